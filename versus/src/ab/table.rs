//! What was found, as text.

use crate::ab::statistics::{Comparison, Verdict};
use crate::engines::Engine;
use crate::report::{align_right, label, number, table};
use crate::rows::Figure;
use crate::selection::Case;

pub(crate) struct Line {
    pub(crate) case: Case,
    pub(crate) engine: Engine,
    pub(crate) figure: Figure,
    pub(crate) unit: String,
    pub(crate) comparison: Comparison,
}

impl Line {
    fn title(&self) -> String {
        let figure = self.figure.to_string();
        let figure = if figure.is_empty() { figure } else { format!(", {figure}") };
        format!("{}{figure}: {}", self.case, self.engine)
    }
}

/// Ratios have that many decimals.
pub(crate) fn report(lines: &[Line], notes: &[String], limit: f64, decimals: usize) -> String {
    let header =
        ["row", "workers", "figure", "ours", "base", "now", "unit", "now/base", "noise", ""];
    let mut table = table(&header);
    for Line { case, engine, figure, unit, comparison } in lines {
        let ratio = comparison.ratio.map(|ratio| format!("{ratio:.decimals$}"));
        let noise = comparison
            .noise
            .map(|noise| format!("{:.decimals$}-{:.decimals$}", noise.least, noise.most));
        let verdict = match comparison.verdict() {
            Verdict::Less => "better",
            Verdict::Same => "~",
            Verdict::More => "WORSE",
            Verdict::Unknown => "?",
        };
        table.add_row([
            case.row.to_string(),
            case.workers.to_string(),
            label(case.setting, *figure),
            engine.to_string(),
            number(comparison.base),
            number(comparison.now),
            unit.clone(),
            ratio.unwrap_or_default(),
            noise.unwrap_or_default(),
            verdict.to_owned(),
        ]);
    }
    align_right(&mut table, &[1, 4, 5, 7, 8]);
    let mut text = format!("{table}\n\n");
    let count = |verdict| lines.iter().filter(|line| line.comparison.verdict() == verdict).count();
    let (less, same, more) = (count(Verdict::Less), count(Verdict::Same), count(Verdict::More));
    let unknown = count(Verdict::Unknown);
    text += &format!(
        "{less} better, {same} inside the noise (~), {more} worse, {unknown} unknown (?)\n"
    );
    let above: Vec<_> = lines.iter().filter(|line| line.comparison.is_above(limit)).collect();
    text += &format!("{} above {limit}, beyond the noise\n", above.len());
    for line in above {
        let ratio = line.comparison.ratio.unwrap_or_default();
        text += &format!("- {}: {ratio:.decimals$}\n", line.title());
    }
    for note in notes {
        text += &format!("note: {note}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Line, report};
    use crate::ab::statistics::Comparison;
    use crate::engines::Engine;
    use crate::rows::{Figure, Row, Setting};
    use crate::selection::Case;

    fn line(row: Row, figure: Figure, base: &[f64], now: &[f64]) -> Line {
        Line {
            case: Case { row, workers: 2, setting: Setting::default() },
            engine: Engine::Elastipool,
            figure,
            unit: "us".to_owned(),
            comparison: Comparison::new(base, now).unwrap(),
        }
    }

    #[test]
    fn each_line_says_whether_it_differs() {
        let lines = [
            line(Row::Tree, Figure::Value, &[10.0, 10.1, 9.9, 10.0, 10.2, 9.8], &[15.0, 15.0]),
            line(Row::Submit, Figure::Value, &[10.0, 20.0, 10.0, 20.0, 10.0, 20.0], &[15.0, 15.0]),
            line(Row::Sporadic, Figure::P50, &[10.0; 6], &[5.0]),
            line(Row::Idle, Figure::Value, &[0.0; 6], &[1.0]),
        ];
        let text = report(&lines, &["a row failed".to_owned()], 1.1, 2);
        let ends = |row: &str, verdict: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("| {row} "))).unwrap();
            let last = line.trim_end_matches('|').rsplit('|').next().unwrap().trim();
            assert_eq!(last, verdict, "{line}");
        };
        ends("tree", "WORSE");
        ends("submit", "~");
        ends("sporadic", "better");
        ends("idle", "?");
        assert!(
            text.contains("1 above 1.1, beyond the noise\n- tree, 2 workers: elastipool: 1.50\n")
        );
        assert!(text.ends_with("note: a row failed\n"), "{text}");
    }
}
