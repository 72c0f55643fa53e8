//! Defects on purpose. The code has none; a copy of it that `scripts/defects` makes has them all.

/// Switches the defect of this name on, on this thread, and the one before off.
pub(crate) fn plant(defect: Option<&str>) {
    assert_eq!(
        defect, None,
        "only the copy that scripts/defects makes has defects to plant"
    );
}
