//! What changes in a file, line by line, as `diff -u` shows it.

use std::fmt::Write as _;

/// How many lines around a change are shown.
const AROUND: usize = 3;

/// Above so many pairs of lines, all between the first and the last change is shown as changed.
const MOST_PAIRS: usize = 4_000_000;

/// One line of both texts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Same(&'t str),
    Gone(&'t str),
    New(&'t str),
}

/// The changes from one text to the other; empty if there are none. `None` is a file that is not there.
pub fn unified(name: &str, before: Option<&str>, after: Option<&str>) -> String {
    let header =
        |sign: &str, text: Option<&str>| format!("{sign} {}\n", if text.is_some() { name } else { "/dev/null" });
    let split =
        |text: Option<&'_ str>| -> Vec<String> { text.unwrap_or_default().lines().map(str::to_owned).collect() };
    let (old, new) = (split(before), split(after));
    let lines = compare(&old, &new);
    let mut out = String::new();
    let changed: Vec<usize> = (0..lines.len()).filter(|n| !matches!(lines[*n], Line::Same(_))).collect();
    let mut rest = &changed[..];
    while let Some(&first) = rest.first() {
        let together = 1 + rest.windows(2).take_while(|pair| pair[1] - pair[0] <= 2 * AROUND + 1).count();
        let last = rest[together - 1];
        rest = &rest[together..];
        if out.is_empty() {
            out = header("---", before) + &header("+++", after);
        }
        hunk(&mut out, &lines, first.saturating_sub(AROUND), (last + 1 + AROUND).min(lines.len()));
    }
    out
}

fn hunk(out: &mut String, lines: &[Line<'_>], from: usize, to: usize) {
    let old = |lines: &[Line<'_>]| lines.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new = |lines: &[Line<'_>]| lines.iter().filter(|line| !matches!(line, Line::Gone(_))).count();
    let (before, here) = (&lines[..from], &lines[from..to]);
    // A range without lines is named by the line before it.
    let range = |skipped: usize, count: usize| format!("{},{count}", skipped + usize::from(count > 0));
    let (left, right) = (range(old(before), old(here)), range(new(before), new(here)));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{left} +{right} @@");
    for line in here {
        let _ = match line {
            Line::Same(text) => writeln!(out, " {text}"),
            Line::Gone(text) => writeln!(out, "-{text}"),
            Line::New(text) => writeln!(out, "+{text}"),
        };
    }
}

/// Both texts together, by their longest common subsequence.
fn compare<'t>(old: &'t [String], new: &'t [String]) -> Vec<Line<'t>> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (middle, other) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut lines: Vec<Line<'_>> = old[..start].iter().map(|line| Line::Same(line)).collect();
    if middle.len().saturating_mul(other.len()) > MOST_PAIRS {
        lines.extend(middle.iter().map(|line| Line::Gone(line)));
        lines.extend(other.iter().map(|line| Line::New(line)));
    } else {
        walk(middle, other, &mut lines);
    }
    lines.extend(old[old.len() - end..].iter().map(|line| Line::Same(line)));
    lines
}

fn walk<'t>(old: &'t [String], new: &'t [String], lines: &mut Vec<Line<'t>>) {
    // How many lines are common from each pair on.
    let width = new.len() + 1;
    let mut common = vec![0u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a * width + b] = if old[a] == new[b] {
                common[(a + 1) * width + b + 1] + 1
            } else {
                common[(a + 1) * width + b].max(common[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            lines.push(Line::Same(&old[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == new.len() || (a < old.len() && common[(a + 1) * width + b] >= common[a * width + b + 1]) {
            lines.push(Line::Gone(&old[a]));
            a += 1;
        } else {
            lines.push(Line::New(&new[b]));
            b += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n";
        assert_eq!(
            unified("f", Some(before), Some(after)),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -13,3 +13,4 @@\n 13\n 14\n 15\n+16\n"
        );
        assert_eq!(unified("f", Some(before), Some(before)), "");
    }

    #[test]
    fn a_file_that_comes_or_goes_is_shown_whole() {
        assert_eq!(unified("f", None, Some("a\nb\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(unified("f", Some("a\n"), None), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
    }
}
