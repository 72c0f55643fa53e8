//! The tree as text, for people.

use crate::supervisor::Strategy;
use crate::tree::{Kind, Node};

/// The tree drawn with lines, one node a line.
pub fn picture(tree: &Node) -> String {
    let mut text = label(tree);
    text.push('\n');
    draw_children(tree, "", &mut text);
    text
}

fn draw_children(node: &Node, indent: &str, text: &mut String) {
    let Kind::Supervisor(policy) = &node.kind else {
        return;
    };
    for (index, child) in policy.children.iter().enumerate() {
        let (branch, below) = if index + 1 == policy.children.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        text.push_str(indent);
        text.push_str(branch);
        text.push_str(&label(child));
        text.push('\n');
        draw_children(child, &format!("{indent}{below}"), text);
    }
}

fn label(node: &Node) -> String {
    match &node.kind {
        Kind::Worker(_) => node.name.to_owned(),
        Kind::Supervisor(policy) => {
            let role = policy
                .group
                .map_or(String::new(), |group| format!("{}:", group.role));
            let strategy = match policy.strategy {
                Strategy::OneForOne => "one_for_one",
                Strategy::RestForOne => "rest_for_one",
            };
            format!("{role}{} ({strategy})", node.name)
        }
    }
}
