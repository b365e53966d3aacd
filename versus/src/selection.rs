//! Which rows, for how many workers, with which settings.

use std::fmt;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::rows::{Row, Setting};

#[derive(Args, Serialize)]
pub(crate) struct Selection {
    /// What to measure [default: all rows]
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    pub(crate) rows: Vec<Row>,

    /// Measure the user rows: those that a user would recognise as his own program
    #[arg(long, conflicts_with = "rows")]
    pub(crate) user: bool,

    /// For how many workers; rows that are about the number of workers have their own
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 10], value_parser = at_least_one)]
    pub(crate) workers: Vec<usize>,

    /// Multiplies the number of tasks: less than 1 for a quick look, not for results
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    pub(crate) scale: f64,
}

/// One line of a row: what all engines are measured with before the next line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Case {
    pub(crate) row: Row,
    pub(crate) workers: usize,
    pub(crate) setting: Setting,
}

impl Selection {
    /// In the order of the rows.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let all = Row::value_variants().iter().copied();
        let rows: Vec<Row> = match (self.user, self.rows.is_empty()) {
            (true, _) => all.filter(|row| row.is_user()).collect(),
            (false, true) => all.collect(),
            (false, false) => self.rows.clone(),
        };
        let mut cases = Vec::new();
        for row in rows {
            for workers in row.workers(&self.workers, self.scale) {
                let settings = row.settings().into_iter();
                let wanted = settings.filter(|&setting| !self.user || row.is_user_setting(setting));
                cases.extend(wanted.map(|setting| Case { row, workers, setting }));
            }
        }
        cases
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("there must be a worker".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && f64::is_finite(factor) => Ok(factor),
        Ok(_) => Err("must be greater than 0".to_owned()),
        Err(error) => Err(format!("{error}")),
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { row, workers, setting } = self;
        write!(f, "{row}, {workers} workers")?;
        if setting.is_none() { Ok(()) } else { write!(f, ", {setting}") }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::{Case, Selection};
    use crate::rows::Row;

    fn cases(rows: &[Row], user: bool) -> Vec<Case> {
        Selection { rows: rows.to_vec(), user, workers: vec![2, 10], scale: 1.0 }.cases()
    }

    #[test]
    fn user_rows_are_a_part_of_all_rows() {
        let (all, user) = (cases(&[], false), cases(&[], true));
        assert!(user.len() < all.len());
        assert!(user.iter().all(|case| all.contains(case)));
        for row in [Row::Closures200, Row::Scope300k, Row::Submit, Row::Waves, Row::Http] {
            assert!(user.iter().any(|case| case.row == row), "{row}");
        }
        for row in [Row::Wide, Row::Chain, Row::Lifetime] {
            assert!(!user.iter().any(|case| case.row == row), "{row}");
        }
        let loads = user.iter().filter(|case| case.row == Row::OpenLoop);
        assert!(loads.clone().all(|case| matches!(case.setting.load, Some(10 | 50 | 80))));
        assert!(loads.count() > 0);
    }

    #[test]
    fn rows_come_in_the_order_in_which_they_were_asked_for() {
        let cases = cases(&[Row::Tree, Row::Empty], false);
        assert_eq!(cases[0].to_string(), "tree, 2 workers");
        assert_eq!(cases[1].to_string(), "tree, 10 workers");
        assert_eq!(cases[3].to_string(), "empty, 2 workers, 1 busy");
        assert_eq!(cases.len(), 8);
    }

    #[test]
    fn each_row_has_a_case_and_an_engine_of_ours() {
        for &row in Row::value_variants() {
            assert!(!cases(&[row], false).is_empty(), "{row}");
            assert!(row.engines().iter().any(|engine| engine.is_ours()), "{row}");
        }
    }
}
