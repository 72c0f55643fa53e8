use super::{Fault, FaultSlot};

#[test]
fn a_plan_counts_only_its_messages_and_ends() {
    let slot = FaultSlot::default();
    *slot.plan.lock() = Some(Fault::Hang.next().at("look").after(1).times(2));
    let struck: Vec<_> = ["look", "other", "look", "other", "look", "look"]
        .map(|message| slot.strikes(message).is_some())
        .into();
    assert_eq!(struck, [false, false, true, false, true, false]);
}

#[test]
fn without_a_name_any_message_will_do() {
    let slot = FaultSlot::default();
    *slot.plan.lock() = Some(Fault::Fail.next());
    assert_eq!(slot.strikes("any"), Some(Fault::Fail));
    assert_eq!(slot.strikes("any"), None);
}
