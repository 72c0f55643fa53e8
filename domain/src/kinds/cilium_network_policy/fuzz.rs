//! Whatever stands in a policy, it is one of krane's own or none.

use krane_testfuzz::Fuzz;

use super::tests::{input, policy, rules};
use super::validate;
use crate::kinds::{Keep, WantedKind as _};

#[test]
fn a_policy_that_is_taken_has_the_name_and_the_place_that_it_was_given() {
    let fuzz = Fuzz::new("CiliumNetworkPolicy")
        .document(policy().to_string())
        .document(r#"{"apiVersion":"cilium.io/v2","kind":"CiliumNetworkPolicy","specs":[{}]}"#)
        .words([
            "null",
            "{}",
            "[]",
            "\"kind\":\"CiliumClusterwideNetworkPolicy\",",
            "\"metadata\":{},",
            "\"namespace\":\"kube-system\"",
            "1e400",
            "9223372036854775808",
            "\\ud800",
        ]);
    fuzz.run(|document| {
        let mut input = input(&policy());
        input.policy = document.to_vec();
        let Ok(desired) = validate(input, &rules()) else {
            return;
        };
        let body = desired.render(&rules(), None, Keep::Nothing).body;
        let metadata = &body["metadata"];
        assert_eq!(body["kind"], "CiliumNetworkPolicy");
        assert_eq!(metadata["name"], "sentinel-ingress-to-dep-1");
        assert_eq!(metadata["namespace"], "abcdefgh");
        assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "krane");
        assert!(metadata["ownerReferences"].is_null() && metadata["finalizers"].is_null());
    });
}
