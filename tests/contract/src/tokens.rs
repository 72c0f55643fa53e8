//! Every way a token can be wrong, every wrong thing to ask for with it, every way the vault can
//! be, and what comes of each: the rules of the two tables, whoever fills them in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is wrong with a token, or with the pod behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Valid,
    Expired,
    NotYetValid,
    BadSignature,
    WrongIssuer,
    /// Made without asking for an audience: it has the API server's.
    NoAudience,
    WrongAudience,
    /// krane's audience is one of two.
    AudienceListWithKrane,
    /// The API server authenticates it and confirms no audience.
    AudiencesNotConfirmed,
    /// Of an account, bound to no pod.
    LegacySecret,
    Node,
    UserCertificate,
    Anonymous,
    OtherNamespace,
    OtherAccount,
    OtherDeployment,
    OtherEnvironment,
    PodDeleted,
    PodDeleting,
    SameNameNewUid,
    PodSucceeded,
    PodLabelRemoved,
    PodNotManaged,
    OwnerMismatch,
    NodeMismatch,
    /// The API server names two pods.
    TwoPods,
    /// `authenticated: false` beside a user.
    RefusedWithUser,
    /// The TokenReview fails.
    ReviewFails,
    /// Of a pod that was started with an earlier blob of the deployment.
    EarlierBlob,
    /// Of a pod of somebody's own ReplicaSet in another namespace, with the ids and the blob of a
    /// deployment.
    ForgedReplicaSet,
    /// The same, with a deployment id that no state has.
    InventedDeployment,
    /// The same, and the ReplicaSet says that the Scheduler API wants it.
    SchedulerMark,
    /// Somebody changed the environment id in the template of the deployment's own ReplicaSet.
    PatchedTemplate,
    /// The same, and in the labels of the ReplicaSet.
    PatchedReplicaSet,
}

impl Class {
    pub const ALL: [Self; 34] = [
        Self::Valid,
        Self::Expired,
        Self::NotYetValid,
        Self::BadSignature,
        Self::WrongIssuer,
        Self::NoAudience,
        Self::WrongAudience,
        Self::AudienceListWithKrane,
        Self::AudiencesNotConfirmed,
        Self::LegacySecret,
        Self::Node,
        Self::UserCertificate,
        Self::Anonymous,
        Self::OtherNamespace,
        Self::OtherAccount,
        Self::OtherDeployment,
        Self::OtherEnvironment,
        Self::PodDeleted,
        Self::PodDeleting,
        Self::SameNameNewUid,
        Self::PodSucceeded,
        Self::PodLabelRemoved,
        Self::PodNotManaged,
        Self::OwnerMismatch,
        Self::NodeMismatch,
        Self::TwoPods,
        Self::RefusedWithUser,
        Self::EarlierBlob,
        Self::ForgedReplicaSet,
        Self::InventedDeployment,
        Self::SchedulerMark,
        Self::PatchedTemplate,
        Self::PatchedReplicaSet,
        // Last: the breaker that it opens is everybody's.
        Self::ReviewFails,
    ];

    /// The audiences that its token is made for; none: whatever the API server gives.
    pub fn audiences(self, audience: Option<&'static str>) -> Vec<&'static str> {
        match self {
            Self::NoAudience => vec![],
            Self::WrongAudience => vec!["somebody-else"],
            Self::AudienceListWithKrane => vec!["somebody-else", "krane"],
            _ => audience.into_iter().collect(),
        }
    }

    /// Whether krane may believe it.
    pub fn is_good(self, audience: Option<&str>) -> bool {
        match self {
            Self::Valid | Self::EarlierBlob => true,
            Self::NoAudience => audience.is_none(),
            Self::AudienceListWithKrane => audience.is_some(),
            _ => false,
        }
    }
}

/// What is asked for with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    Own,
    OtherDeployment,
    OtherEnvironment,
    ForeignBlob,
}

impl Ask {
    pub const ALL: [Self; 4] = [
        Self::Own,
        Self::OtherDeployment,
        Self::OtherEnvironment,
        Self::ForeignBlob,
    ];
}

/// How the vault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    Well,
    Failing,
    /// Slow, and within the deadline.
    Slow,
    /// It leaves a name out.
    Partial,
}

impl Backend {
    pub const ALL: [Self; 4] = [Self::Well, Self::Failing, Self::Slow, Self::Partial];
}

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    Plaintext,
    Unauthenticated,
    Unavailable,
    /// Anything else: never right.
    Other,
}

/// What must come of a cell (D29, D30, D50).
pub fn expected(class: Class, audience: Option<&str>, ask: Ask, backend: Backend) -> Answer {
    if class == Class::ReviewFails {
        return Answer::Unavailable;
    }
    if !class.is_good(audience) || ask != Ask::Own {
        return Answer::Unauthenticated;
    }
    match backend {
        Backend::Well | Backend::Slow => Answer::Plaintext,
        Backend::Failing | Backend::Partial => Answer::Unavailable,
    }
}

/// One table, as it was filled in.
#[derive(Debug, Default)]
pub struct Table {
    cells: BTreeMap<(Class, Ask, Backend), (Answer, u64)>,
}

impl Table {
    /// Writes down a cell: what the caller got, and how often the vault was asked for it.
    pub fn fill(&mut self, class: Class, ask: Ask, backend: Backend, answer: Answer, asked: u64) {
        self.cells.insert((class, ask, backend), (answer, asked));
    }

    /// As people read it: `P` plaintext, `a` unauthenticated, `u` unavailable; a column is a
    /// request, its four letters are the states of the vault.
    pub fn text(&self, audience: Option<&str>) -> String {
        let mut text = format!(
            "audience {:?}; vault: well, failing, slow, partial\n{:24}",
            audience.unwrap_or_default(),
            ""
        );
        for ask in Ask::ALL {
            let _ = write!(text, "{:18}", format!("{ask:?}"));
        }
        for class in Class::ALL {
            let _ = write!(text, "\n{:24}", format!("{class:?}"));
            for ask in Ask::ALL {
                let letters: String = Backend::ALL
                    .iter()
                    .map(|&backend| match self.cells.get(&(class, ask, backend)) {
                        Some((Answer::Plaintext, _)) => 'P',
                        Some((Answer::Unauthenticated, _)) => 'a',
                        Some((Answer::Unavailable, _)) => 'u',
                        Some((Answer::Other, _)) => '!',
                        None => '-',
                    })
                    .collect();
                let _ = write!(text, "{letters:18}");
            }
        }
        text
    }

    /// What is not as it must be.
    pub fn problems(&self, audience: Option<&str>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut plain = 0;
        for class in Class::ALL {
            for ask in Ask::ALL {
                for backend in Backend::ALL {
                    let cell = format!("{class:?}, {ask:?}, {backend:?}");
                    let Some((answer, asked)) = self.cells.get(&(class, ask, backend)) else {
                        problems.push(format!("{cell}: not tried"));
                        continue;
                    };
                    let wanted = expected(class, audience, ask, backend);
                    plain += usize::from(*answer == Answer::Plaintext);
                    if *answer != wanted {
                        problems.push(format!("{cell}: {answer:?} instead of {wanted:?}"));
                    }
                    let may_ask = class.is_good(audience) && ask == Ask::Own;
                    if *asked > 0 && !may_ask {
                        problems.push(format!("{cell}: the vault was asked {asked} times"));
                    }
                }
            }
        }
        if plain != 6 {
            problems.push(format!("{plain} cells with plaintext instead of 6"));
        }
        problems
    }
}
