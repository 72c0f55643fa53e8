//! The command line without a process.

use std::path::PathBuf;

use clap::{CommandFactory, Parser};
use krane_settings::{KEYS, LoadInput, Loaded};

use super::output::Terminal;
use super::{Cli, Verb};

fn input(arguments: &[&str]) -> LoadInput {
    let Verb::Run(run) = Cli::try_parse_from(arguments).unwrap().verb else {
        panic!("must be run")
    };
    run.into_input(LoadInput::default())
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_flag_of_a_key_sets_that_key() {
    for (key, flag) in KEYS.iter().filter_map(|key| Some((key, key.flag?))) {
        let input = input(&["krane", "run", flag, "value"]);
        let [value] = &input.flags[..] else {
            panic!("{flag} must set one key");
        };
        assert_eq!(
            (&*value.flag, &*value.path, &*value.value),
            (flag, key.path, "value")
        );
    }
}

#[test]
fn the_last_flag_on_the_line_wins_whatever_it_is_called() {
    let values = |arguments: &[&str]| -> Vec<String> {
        input(arguments)
            .flags
            .into_iter()
            .map(|flag| flag.value)
            .collect()
    };
    let line = [
        "krane",
        "run",
        "--set",
        "rpc_port=1",
        "--rpc-port",
        "2",
        "--set",
        "rpc_port=3",
    ];
    assert_eq!(values(&line), ["1", "2", "3"]);
    assert_eq!(
        values(&["krane", "run", "--set=control.url=http://h?a=b"]),
        ["http://h?a=b"]
    );
}

#[test]
fn files_flags_and_cluster_access_reach_the_settings() {
    let input = input(&[
        "krane",
        "run",
        "--config",
        "a.toml",
        "--config",
        "b.toml",
        "--observe",
        "--kubeconfig",
        "k",
        "--context",
        "kind",
    ]);
    assert_eq!(
        input.files,
        [PathBuf::from("a.toml"), PathBuf::from("b.toml")]
    );
    assert!(
        input.flags.is_empty(),
        "a switch of the process is no setting"
    );
    assert_eq!(input.kubeconfig, Some(PathBuf::from("k")));
    assert_eq!(input.context.as_deref(), Some("kind"));
}

#[test]
fn a_problem_is_a_sentence_with_its_facts_and_its_fix() {
    let mut input = LoadInput::default();
    input
        .env
        .insert("KRANE__RPC_PORT".to_owned(), "70000".to_owned());
    input
        .env
        .insert("KRANE__CONTRL__URL".to_owned(), "http://control".to_owned());
    let invalid = Loaded::load(&input).unwrap_err();
    insta::assert_snapshot!(Terminal::render_for_test(false, &invalid), @r#"
    ✗ KRANE__CONTRL__URL is not a known key  krane::config::unknown_key
      ├ from   environment variable KRANE__CONTRL__URL
      ╰ help   did you mean KRANE__CONTROL__URL?

    ✗ region is required  krane::config::missing
      ╰ help   set region, such as "us-east-1.aws", or KRANE__REGION

    ✗ rpc_port must be a whole number from 1 to 65535  krane::config::out_of_range
      ├ value  "70000"
      ├ from   environment variable KRANE__RPC_PORT
      ╰ help   set rpc_port to a whole number from 1 to 65535, such as 8070

    ✗ control.url is required  krane::config::missing
      ╰ help   set control.url, such as "https://control.example.com", or KRANE__CONTROL__URL

    ✗ control.token is required  krane::config::missing
      ╰ help   set control.token_file, such as "/etc/krane/token", or KRANE__CONTROL__TOKEN

    ✗ 5 problems in the configuration, nothing was started
    "#);
    let coloured = Terminal::render_for_test(true, &invalid);
    assert!(coloured.contains("\x1b[1;31m✗\x1b[0m"), "{coloured}");
}

/// A shell that offered what is refused, or kept a verb to itself, would mislead.
#[test]
fn every_shell_completes_every_verb() {
    let verbs: Vec<String> = Cli::command()
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    assert!(verbs.contains(&"check".to_owned()));
    for shell in [
        clap_complete::Shell::Bash,
        clap_complete::Shell::Zsh,
        clap_complete::Shell::Fish,
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "krane", &mut script);
        let script = String::from_utf8(script).unwrap();
        for verb in &verbs {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
        assert!(script.contains("--config") || script.contains("-l config"));
    }
}

#[test]
fn every_verb_has_a_page_of_the_manual() {
    fn visit(command: &clap::Command, verbs: &[String]) {
        let page = super::man::page(verbs).unwrap_or_else(|| panic!("no page of {verbs:?}"));
        let name = ["krane"]
            .into_iter()
            .chain(verbs.iter().map(String::as_str));
        let (spaced, dashed) = (
            name.clone().collect::<Vec<_>>().join(" "),
            name.collect::<Vec<_>>().join("-"),
        );
        assert!(
            page.starts_with(".ie") && page.contains(&format!(".TH {dashed} 1")),
            "{page}"
        );
        let plain = page.replace('\\', "");
        assert!(
            plain.contains(&spaced),
            "{spaced} is not in the synopsis of\n{page}"
        );
        for verb in command.get_subcommands() {
            let below = [verbs, &[verb.get_name().to_owned()]].concat();
            visit(verb, &below);
        }
    }
    visit(&Cli::command(), &[]);
    assert!(super::man::page(&["nothing".to_owned()]).is_none());
}

#[test]
fn help_lists_the_exit_codes_and_only_the_flags_that_matter() {
    let help = |verbs: &[&str]| {
        let mut command = Cli::command();
        command.build();
        let mut at = &mut command;
        for verb in verbs {
            at = at.find_subcommand_mut(verb).unwrap();
        }
        at.render_long_help().to_string()
    };
    assert!(help(&[]).contains("78  the configuration is wrong"));
    for verb in ["run", "check-config", "check"] {
        assert!(help(&[verb]).contains("Exit codes: 0"), "{verb}");
    }
    let verify = help(&["vault", "verify"]);
    assert!(verify.contains("--vault-url"), "{verify}");
    assert!(!verify.contains("--log-level"), "{verify}");
}
