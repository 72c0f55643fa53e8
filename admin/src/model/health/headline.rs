//! The sentence about everything that is wrong: what is true of several controllers is said once.

use super::Level;

/// What the sentence has to say, in the order it was found.
#[derive(Debug, Default)]
pub(super) struct Headline {
    parts: Vec<(Level, Part)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Words(String),
    /// So many of something, such as 2 states set aside.
    Sum {
        count: usize,
        noun: &'static str,
        rest: &'static str,
    },
    /// Such as: sentinels and cilium have no stream.
    Whose {
        names: Vec<&'static str>,
        singular: &'static str,
        plural: &'static str,
    },
}

impl Headline {
    /// Something that is said once, however often it is found.
    pub(super) fn say(&mut self, level: Level, words: impl Into<String>) {
        let part = Part::Words(words.into());
        if !self.parts.iter().any(|(_, known)| *known == part) {
            self.parts.push((level, part));
        }
    }

    /// So many more of something.
    pub(super) fn count(
        &mut self,
        level: Level,
        more: usize,
        noun: &'static str,
        rest: &'static str,
    ) {
        let mut known = self.parts.iter_mut().filter_map(|(_, part)| match part {
            Part::Sum {
                count,
                noun: of,
                rest: what,
            } if (*of, *what) == (noun, rest) => Some(count),
            Part::Sum { .. } | Part::Words(_) | Part::Whose { .. } => None,
        });
        if let Some(count) = known.next() {
            *count += more;
        } else if more > 0 {
            let count = more;
            self.parts.push((level, Part::Sum { count, noun, rest }));
        }
    }

    /// Something about a controller, with the words for one and for several.
    pub(super) fn of(
        &mut self,
        level: Level,
        name: &'static str,
        singular: &'static str,
        plural: &'static str,
    ) {
        let mut known = self.parts.iter_mut().filter_map(|(_, part)| match part {
            Part::Whose {
                names,
                singular: what,
                ..
            } if *what == singular => Some(names),
            Part::Whose { .. } | Part::Words(_) | Part::Sum { .. } => None,
        });
        if let Some(names) = known.next() {
            names.push(name);
        } else {
            let names = vec![name];
            let part = Part::Whose {
                names,
                singular,
                plural,
            };
            self.parts.push((level, part));
        }
    }

    /// The worst first; nothing if nothing is wrong.
    pub(super) fn sentence(mut self) -> Option<(Level, String)> {
        self.parts
            .sort_by_key(|(level, _)| std::cmp::Reverse(*level));
        let (worst, _) = self.parts.first()?;
        let parts: Vec<String> = self.parts.iter().map(|(_, part)| part.words()).collect();
        Some((*worst, super::upper_first(&parts.join(", "))))
    }
}

impl Part {
    fn words(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Sum { count, noun, rest } => {
                format!("{} {rest}", krane_domain::words::many(*count, noun))
            }
            Self::Whose {
                names,
                singular,
                plural,
            } => match names.split_last() {
                // Deployments are several by themselves.
                Some((last, [])) if last.ends_with('s') => format!("{last} {plural}"),
                Some((last, [])) => format!("{last} {singular}"),
                Some((last, others)) => format!("{} and {last} {plural}", others.join(", ")),
                None => String::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Headline, Level};

    #[test]
    fn the_verb_goes_with_the_name() {
        let told = |name| {
            let mut headline = Headline::default();
            headline.of(Level::Warn, name, "has no stream", "have no stream");
            headline.sentence().unwrap().1
        };
        assert_eq!(told("sentinels"), "Sentinels have no stream");
        assert_eq!(told("cilium"), "Cilium has no stream");
    }

    #[test]
    fn what_is_true_of_several_is_said_once_and_the_worst_first() {
        let mut headline = Headline::default();
        for name in ["deployments", "sentinels", "cilium"] {
            headline.of(Level::Warn, name, "has no stream", "have no stream");
            headline.count(Level::Bad, 1, "state", "set aside");
            headline.count(Level::Warn, 0, "object", "on hold");
            headline.say(Level::Bad, "the cluster cannot be read");
        }
        headline.of(Level::Warn, "cilium", "is slow", "are slow");
        let (level, sentence) = headline.sentence().unwrap();
        assert_eq!(level, Level::Bad);
        assert_eq!(
            sentence,
            "3 states set aside, the cluster cannot be read, deployments, sentinels and cilium \
             have no stream, cilium is slow"
        );
        assert_eq!(Headline::default().sentence(), None);
    }
}
