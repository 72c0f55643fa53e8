//! Who gets secrets, in two tables: with the API server's own audience, and with one of krane.

use krane_testsim::token_table;

#[test]
fn only_the_right_token_with_the_right_question_gets_plaintext() {
    for audience in [None, Some("krane")] {
        let table = token_table(audience).expect("it runs");
        println!("{}\n", table.text(audience));
        assert_eq!(table.problems(audience), Vec::<String>::new());
    }
}
