//! Columns of text, as `kubectl get` prints them.

/// A longer cell moves what follows it in its own line only. No name in Kubernetes is longer.
const WIDEST: usize = 253;

/// A table that is printed when it is complete.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these column heads; none for a table without heads.
    pub(super) fn new(heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { rows: vec![heads] }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// All rows, the last column as long as it is.
    pub(super) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max();
            widest.unwrap_or_default().min(WIDEST)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| !row.is_empty()) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line += cell;
                let missing = (width + 3).saturating_sub(cell.chars().count());
                line += &" ".repeat(missing.max(1));
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_with_text() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(["a".to_owned(), "in place".to_owned()]);
        table.row(["länger".to_owned(), String::new()]);
        assert_eq!(table.text(), "NAME     STATE\na        in place\nlänger\n");
    }
}
