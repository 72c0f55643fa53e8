//! Secrets follow their files and show up nowhere.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::super::keys::{FILE_SUFFIX, KEYS};
use super::super::{SecretFiles, SecretSource, Settings};
use super::Given;

const CANARY: &str = "canary-9f86d081884c7d65";

fn current(source: &SecretSource) -> String {
    source.current().expose_secret().to_owned()
}

#[test]
fn a_secret_file_is_read_again_when_it_changes() {
    let given = Given::required();
    let path = given.write("token", "first\n");
    let source = SecretSource::file(&path).unwrap();
    assert_eq!(current(&source), "first");
    // The same length, and within the clock tick of the file system.
    given.write("token", "other\n");
    assert_eq!(current(&source), "other");
    assert_eq!(current(&source.clone()), "other");
}

#[test]
fn a_secret_file_that_is_swapped_by_a_link_is_followed() {
    let given = Given::required();
    let (old, new) = (given.write("old", "old"), given.write("new", "new"));
    let (link, next) = (given.path("token"), given.path("next"));
    std::os::unix::fs::symlink(&old, &link).unwrap();
    let source = SecretSource::file(&link).unwrap();
    std::os::unix::fs::symlink(&new, &next).unwrap();
    std::fs::rename(&next, &link).unwrap();
    assert_eq!(current(&source), "new");
}

#[test]
fn the_last_good_secret_stays_while_the_file_is_unusable() {
    let given = Given::required();
    let path = given.write("token", "good");
    let source = SecretSource::file(&path).unwrap();
    for unusable in [Some(""), Some("\n"), Some(&*"x".repeat(70_000)), None] {
        match unusable {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        assert_eq!(current(&source), "good");
    }
    given.write("token", "better");
    assert_eq!(current(&source), "better");
}

/// (F2) Whoever must not wait for a disk has the last good copy, which another look replaces.
#[test]
fn the_last_good_copy_follows_its_file_only_when_two_looks_find_the_same() {
    let given = Given::required();
    let path = given.write("password", "old");
    let source = SecretSource::file(&path).unwrap();
    let files: SecretFiles = [("registry.password_file", source.clone())]
        .into_iter()
        .collect();
    let in_force = || source.last_good().expose_secret().to_owned();
    assert!(!files.refresh(Duration::ZERO), "as it was");
    for half in ["ne", "new-pass"] {
        given.write("password", half);
        assert!(files.refresh(Duration::ZERO), "another look is due soon");
        assert_eq!(in_force(), "old");
    }
    given.write("password", "new-password\n");
    assert!(files.refresh(Duration::ZERO));
    assert!(!files.refresh(Duration::ZERO));
    assert_eq!(in_force(), "new-password");
    assert_eq!(files.unusable(), []);
}

/// (F2) A file that was emptied or removed is said with its key, since it was first seen so.
#[test]
fn a_file_that_cannot_be_used_is_a_problem_until_it_can() {
    let given = Given::required();
    let path = given.write("password", "good");
    let source = SecretSource::file(&path).unwrap();
    let files: SecretFiles = [
        ("registry.password_file", source.clone()),
        ("control.token_file", SecretSource::fixed("no file")),
    ]
    .into_iter()
    .collect();
    given.write("password", "");
    for second in [3, 8] {
        assert!(!files.refresh(Duration::from_secs(second)));
        let [file] = &files.unusable()[..] else {
            panic!("{:?}", files.unusable())
        };
        assert_eq!((file.key, &file.path), ("registry.password_file", &path));
        assert_eq!(file.reason, "is empty");
        assert_eq!(file.since, Duration::from_secs(3));
        assert_eq!(source.last_good().expose_secret(), "good");
    }
    given.write("password", "good");
    assert!(!files.refresh(Duration::from_secs(9)));
    assert_eq!(files.unusable(), []);
}

/// (F2) No secret that may be in a file is left out.
#[test]
fn every_key_of_a_secret_is_among_the_files_that_are_read_again() {
    let remote = ["vault.token"];
    for is_remote in [true, false] {
        let mut given = Given::required().file(
            "[registry]\nurl = 'r'\nusername = 'u'\n\
             [vault.s3]\nurl = 'http://s3'\nbucket = 'b'\naccess_key_id = 'i'\n",
        );
        if is_remote {
            given = Given::required()
                .file("registry.url = 'r'\nregistry.username = 'u'\nvault.url = 'http://v'");
        }
        let path = given.write("none", "good").display().to_string();
        let secrets = KEYS.iter().filter(|key| key.kind.is_secret());
        let keys: Vec<_> = secrets
            .filter(|key| {
                !key.path.starts_with("vault.") || remote.contains(&key.path) == is_remote
            })
            .collect();
        for key in &keys {
            let variable = format!("{}{}", key.variable(), FILE_SUFFIX.to_uppercase());
            given = given.env(&variable, &path);
        }
        let files = SecretFiles::of(&given.settings());
        given.write("none", "");
        assert!(!files.refresh(Duration::ZERO));
        let mut found: Vec<_> = files
            .unusable()
            .iter()
            .map(|it| it.key.to_owned())
            .collect();
        let mut wanted: Vec<_> = keys
            .iter()
            .map(|key| format!("{}{FILE_SUFFIX}", key.path))
            .collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
    }
}

#[test]
fn an_unusable_secret_file_is_a_problem_at_start() {
    let given = Given::required();
    given.write("empty", "\n");
    std::fs::write(given.path("binary"), [0xff, 0xfe]).unwrap();
    let dir = given.dir.path().display().to_string();
    let given = given.env("KRANE__CONTROL__TOKEN_FILE", &format!("{dir}/empty"));
    let help = "check that the file is mounted, readable and not empty";
    given.refused(&format!(
        "control.token_file names {dir}/empty, which is empty; \
         from environment variable KRANE__CONTROL__TOKEN_FILE; {help}"
    ));
    for (name, reason) in [
        ("none", "cannot be read: no such file"),
        ("binary", "is not text"),
    ] {
        let path = format!("{dir}/{name}");
        let given = Given::required().file(&format!("control.token_file = '{path}'"));
        given.refused(&format!(
            "control.token_file names {path}, which {reason}; from file {{dir}}/1.toml; {help}"
        ));
    }
}

#[test]
fn the_higher_layer_decides_between_a_secret_and_its_file() {
    let token = |given: &Given| current(&given.settings().control.token);
    let given = Given::required();
    let path = given.write("token", "from-file").display().to_string();
    let given = given.file(&format!("control.token_file = '{path}'"));
    assert_eq!(token(&given), "from-file");
    let given = given.env("UNKEY_CONTROL_PLANE_BEARER", "from-flat");
    assert_eq!(token(&given), "from-flat");
    let given = given.env("KRANE__CONTROL__TOKEN_FILE", &path);
    assert_eq!(token(&given), "from-file");
    let given = given.env("KRANE__CONTROL__TOKEN", "both");
    given.refused(
        "control.token is set both directly and by its file; \
         from environment variable KRANE__CONTROL__TOKEN; remove control.token or control.token_file",
    );
}

#[test]
fn a_secret_is_text_and_keeps_its_zeros() {
    let given = Given::required().env("KRANE__CONTROL__TOKEN", "00123");
    assert_eq!(current(&given.settings().control.token), "00123");
    Given::required().file("control.token = 123").refused(
        "control.token must be a string, not a whole number; from file {dir}/1.toml; \
         give the secret as one quoted line without a line break, or its file in control.token_file",
    );
}

/// `token_file` with the token itself is a likely mistake.
#[test]
fn a_secret_in_the_place_of_its_path_is_not_repeated() {
    let given = Given::required().env("KRANE__CONTROL__TOKEN_FILE", CANARY);
    given.refused(
        "control.token_file names a file whose name is not shown, for without a folder that is \
         there, such as ./, it may be the secret itself, which cannot be read: no such file; \
         from environment variable KRANE__CONTROL__TOKEN_FILE; \
         check that the file is mounted, readable and not empty",
    );
}

/// A path is no secret, and what was looked for where is all that helps.
#[test]
fn a_missing_file_is_named_in_whole_also_where_the_path_was_relative() {
    let folder = std::env::current_dir().unwrap();
    for name in ["./control-plane-token", "src/Token1"] {
        let given = Given::required().env("KRANE__CONTROL__TOKEN_FILE", name);
        let path = folder.join(name.trim_start_matches("./"));
        let path = path.display();
        given.refused(&format!(
            "control.token_file names {path}, which cannot be read: no such file; \
             from environment variable KRANE__CONTROL__TOKEN_FILE; \
             check that the file is mounted, readable and not empty",
        ));
    }
}

/// The Secret that is not mounted: the folder of its file is missing, too.
#[test]
fn a_file_that_is_not_mounted_is_named() {
    let path = "/proc/none/krane/token";
    let given = Given::required().env("KRANE__CONTROL__TOKEN_FILE", path);
    let told = format!("{:?}", given.load().err());
    assert!(told.contains(path), "{told}");
}

/// A pass phrase is made of words, as the name of a file is.
#[test]
fn words_without_a_folder_are_not_repeated() {
    for word in ["correct-horse-battery", "token.txt"] {
        let given = Given::required().env("KRANE__CONTROL__TOKEN_FILE", word);
        let told = format!("{:?}", given.load().err());
        assert!(told.contains("control.token_file"), "{told}");
        assert!(!told.contains(word), "{told}");
    }
}

/// Base64, tokens of a vault and addresses with a password have slashes, too.
#[test]
fn a_secret_with_a_slash_is_not_taken_for_a_path() {
    let secrets = [
        "kA9/bQ7+zL2mX0dVt1c5rw==",
        "/9sTq4ZkR2v8wQ==",
        "//9sTq4ZkR2v8wQ==",
        "hvs.CAES/xyz",
        "https://u:pw@host/x",
    ];
    for secret in secrets {
        let given = Given::required().env("KRANE__CONTROL__TOKEN_FILE", secret);
        let invalid = given.load().unwrap_err();
        let told = format!("{invalid}\n{invalid:?}\n{}", invalid.effective);
        assert!(told.contains("control.token_file"), "{told}");
        assert!(!told.contains(secret), "{told}");
        assert!(!told.contains("sTq4Z"), "{told}");
    }
}

/// The problem and the effective configuration follow one rule.
#[test]
fn the_path_that_a_problem_names_is_printed_too() {
    for (path, is_shown) in [("./none", true), ("src/none", true), ("no/none", false)] {
        let given = Given::required().env("KRANE__CONTROL__TOKEN_FILE", path);
        let printed = given.load().unwrap_err().effective.to_string();
        let shown = if is_shown { path } else { "…" };
        let line = format!("control.token_file = \"{shown}\"");
        assert!(printed.contains(&line), "{printed}");
    }
}

/// Every secret planted directly, in `_file` and in `${…}`.
fn planted() -> Vec<Given> {
    let direct = |given: Given| {
        let secrets = KEYS.iter().filter(|key| key.kind.is_secret());
        secrets.fold(given, |given, key| given.env(&key.variable(), CANARY))
    };
    let complete = "[registry]\nurl = 'r'\nusername = 'u'\n\
                    [vault.s3]\nurl = 'http://s3'\nbucket = 'b'\naccess_key_id = 'i'\n";
    let mut files = Given::required().file(complete);
    let path = files.write("canary", CANARY).display().to_string();
    let mut references = Given::required().file(complete).env("CANARY", CANARY);
    for key in KEYS.iter().filter(|key| key.kind.is_secret()) {
        files = files.env(
            &format!("{}{}", key.variable(), FILE_SUFFIX.to_uppercase()),
            &path,
        );
        references = references.file(&format!("{} = '${{CANARY}}'", key.path));
    }
    vec![direct(Given::required().file(complete)), files, references]
}

#[test]
fn no_secret_is_in_the_effective_configuration_or_in_debug_output() {
    for given in planted() {
        let loaded = given.load().unwrap_or_else(|invalid| panic!("{invalid}"));
        let Settings { control, .. } = &loaded.settings;
        assert_eq!(current(&control.token), CANARY);
        for output in [
            loaded.effective.to_string(),
            format!("{loaded:?}"),
            format!("{loaded:#?}"),
        ] {
            assert!(!output.contains(CANARY), "{output}");
        }
    }
}

#[test]
fn no_secret_is_in_a_problem() {
    let wrong = [
        format!("control.token = ['{CANARY}']"),
        format!("control.token_file = ['{CANARY}']"),
        format!("control.token = '{CANARY}\\n'\nscheduler.token = \"{CANARY}\\u0007\""),
        format!("control.token = '{CANARY}${{'"),
        format!("control.token = '${{MISSING}}{CANARY}'"),
        format!("control.token = '$CANARY'\ncontrol.token_fil = '{CANARY}'"),
        format!("[registry]\npassword = '{CANARY}'"),
        format!("[vault]\nmaster_keys = ['{CANARY}', 7]"),
        format!("control.url = 'https://me:{CANARY}@control'"),
        format!("control.url = 'https://control?token={CANARY}'"),
        format!("[registry]\nurl = 'me:{CANARY}@r'\nusername = 'u'\npassword = 'p'"),
        format!("[contrl]\ntoken = '{CANARY}'"),
        format!("control = '{CANARY}'"),
        format!("control.token = \"{CANARY}"),
        format!("control.token = {CANARY}"),
        format!("{CANARY} ="),
        format!("control.token = '{CANARY}' '{CANARY}'"),
    ];
    for text in wrong {
        let text = text.replace("$CANARY'", "$CANARY_9F86'");
        let given = Given::required()
            .file(&text)
            .env("KRANE__CONTROL__TOKN", CANARY)
            .env("KRANE__CONTROL", CANARY)
            .set("admin.token", CANARY)
            .set("nonsense", CANARY);
        let invalid = given.load().expect_err(&text);
        let printed = invalid.effective.to_string();
        for output in [invalid.to_string(), format!("{invalid:?}"), printed] {
            assert!(!output.contains(CANARY), "{text}\n{output}");
            assert!(!output.contains("CANARY_9F86"), "{text}\n{output}");
        }
        assert!(!format!("{:?}", given.input.flags).contains(CANARY));
    }
}

/// A secret may look like a reference; nothing between its braces is repeated then.
#[test]
fn a_secret_with_a_reference_in_it_is_not_quoted() {
    let given = Given::required().file("[vault]\ntoken = 'pa${ss1word}rest'");
    for problem in given.problems() {
        let told = format!("{problem} {problem:?}");
        assert!(!told.contains("ss1word"), "{told}");
    }
    let given = Given::required().file("[vault]\ntoken = '${VAULT_TOKEN}'");
    let told = given.problems()[0].to_string();
    assert!(told.contains("VAULT_TOKEN"), "{told}");
}
