use super::Quantity;

fn parse(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|| panic!("{text} is a quantity"))
}

#[test]
fn spellings_of_one_value_are_equal() {
    let equal = [
        ["1000m", "1"],
        ["0.5", "500m"],
        ["0.25", "250m"],
        ["0m", "0"],
        ["-0", "0"],
        ["2048Mi", "2Gi"],
        ["0.5Gi", "512Mi"],
        ["1.5Gi", "1536Mi"],
        ["1000M", "1G"],
        ["1Gi", "1073741824"],
        ["1e9", "1G"],
        ["1E3", "1k"],
        ["1000000Ki", "1024000000"],
        ["+1Gi", "1Gi"],
        [".5", "500m"],
        ["5.", "5"],
        ["100n", "0.1u"],
        ["00010", "10"],
    ];
    for [left, right] in equal {
        assert_eq!(parse(left), parse(right), "{left} and {right}");
    }
}

#[test]
fn different_values_differ() {
    for [left, right] in [
        ["1G", "1Gi"],
        ["1m", "1M"],
        ["1", "-1"],
        ["1", "1.0000000001"],
        ["1E", "1e1"],
    ] {
        assert_ne!(parse(left), parse(right), "{left} and {right}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        "-",
        ".",
        "1.2.3",
        "Mi",
        "1mi",
        "1 Gi",
        "0x10",
        "1e",
        "one",
        "1e99999999999",
        "--1",
    ] {
        assert_eq!(Quantity::parse(text), None, "{text}");
    }
}

#[test]
fn thousandths_round_up() {
    for (text, thousandths) in [
        ("500m", 500),
        ("0.5", 500),
        ("1", 1000),
        ("0.1m", 1),
        ("1.0001", 1001),
        ("0.001", 1),
        ("0.3", 300),
        ("1e30", i64::MAX),
        ("-2", -2000),
        ("0", 0),
    ] {
        assert_eq!(parse(text).thousandths(), thousandths, "{text}");
    }
}

#[test]
fn mebi_truncates() {
    for (text, mebi) in [
        ("256Mi", 256),
        ("268435456", 256),
        ("1Gi", 1024),
        ("1G", 953),
        ("1048575", 0),
        ("0.5Gi", 512),
        ("8Ei", 8_796_093_022_208),
    ] {
        assert_eq!(parse(text).mebi(), mebi, "{text}");
    }
}
