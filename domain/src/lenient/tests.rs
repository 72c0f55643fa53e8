use serde::Deserialize;

use super::{First, Items, Struct, Text};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sample<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    inner: Struct<Inner<'a>>,
    #[serde(borrow)]
    items: Items<Text<'a>>,
    #[serde(borrow)]
    first: First<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inner<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

fn read(json: &str) -> String {
    let Struct(sample) =
        serde_json::from_str::<Struct<Sample<'_>>>(json).unwrap_or_else(|e| panic!("{json}: {e}"));
    format!(
        "{}|{}|{}|{}",
        sample.text.as_str(),
        sample.inner.0.text.as_str(),
        sample
            .items
            .0
            .iter()
            .map(Text::as_str)
            .collect::<Vec<_>>()
            .join(","),
        sample.first.0.unwrap_or_default().as_str(),
    )
}

#[test]
fn what_fits_is_read() {
    let json =
        r#"{"x":{"y":[1]},"text":"a\n","inner":{"text":true},"items":[1,-2,0.5],"first":["b",{}]}"#;
    assert_eq!(read(json), "a\n|true|1,-2,0.5|b");
}

#[test]
fn what_does_not_fit_counts_as_absent() {
    for odd in [
        "null",
        "true",
        "1",
        "-1",
        "0.5",
        "\"x\"",
        "\"\\n\"",
        "[[1]]",
        "{\"a\":{}}",
    ] {
        let text = match odd {
            "true" | "1" | "-1" | "0.5" => odd,
            "\"x\"" => "x",
            "\"\\n\"" => "\n",
            _ => "",
        };
        let json = format!(r#"{{"text":{odd},"inner":{odd},"items":{odd},"first":{odd}}}"#);
        assert_eq!(read(&json), format!("{text}|||"), "{odd}");
        assert_eq!(read(odd), "|||", "{odd}");
    }
}
