//! What a frame looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline};

use crate::app::Snapshot;

const RUNNING: Color = Color::Blue;
const BLOCKED: Color = Color::Magenta;
const IDLE: Color = Color::DarkGray;
const QUEUED: Color = Color::Yellow;
const FREE: &str = "·";
const TAKEN: &str = "█";

pub(crate) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot) {
    let [now, charts, counters, keys] = Layout::vertical([
        Constraint::Length(6),
        Constraint::Min(6),
        Constraint::Length(4),
        Constraint::Length(6),
    ])
    .areas(frame.area());
    let [workers, queue] =
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(charts);
    draw_now(frame, now, snapshot);
    let max_size = Some(snapshot.max_size as u64);
    draw_history(frame, workers, "running workers", RUNNING, &snapshot.running, max_size);
    draw_history(frame, queue, "queue", QUEUED, &snapshot.queued, None);
    draw_counters(frame, counters, snapshot);
    draw_keys(frame, keys, snapshot);
}

/// The workers, one character for each, and those that the pool may still start.
fn draw_now(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let stats = &snapshot.stats;
    let running = stats.active.saturating_sub(stats.blocked);
    let idle = stats.workers.saturating_sub(stats.active);
    let free = snapshot.max_size.saturating_sub(running + idle);
    let width = usize::from(area.width);
    let bar = |count: usize, text: &str, color| Span::styled(text.repeat(count.min(width)), color);
    let lines = vec![
        Line::from(vec![
            bar(running, TAKEN, RUNNING),
            bar(stats.blocked, TAKEN, BLOCKED),
            bar(idle, TAKEN, IDLE),
            bar(free, FREE, IDLE),
        ]),
        Line::from(vec![
            Span::styled(format!("{running} running  "), RUNNING),
            Span::styled(format!("{} in blocking regions  ", stats.blocked), BLOCKED),
            Span::styled(format!("{idle} idle  "), IDLE),
            Span::styled(format!("{} queued", stats.queued), QUEUED),
        ]),
        Line::from(format!(
            "core_size {}   max_size {}   keep_alive {:?}",
            snapshot.core_size, snapshot.max_size, snapshot.keep_alive
        )),
        Line::from("max_size limits running workers, not blocked or idle ones"),
    ];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" elastipool ")), area);
}

/// As many of the last frames as there are columns, the last one at the right, and a line at the
/// limit.
fn draw_history(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    color: Color,
    history: &[u64],
    limit: Option<u64>,
) {
    let columns = usize::from(area.width.saturating_sub(2));
    let shown = &history[history.len().saturating_sub(columns)..];
    let highest = shown.iter().copied().max().unwrap_or_default();
    // Empty columns at the left, until there are enough frames.
    let mut data = vec![0; columns - shown.len()];
    data.extend_from_slice(shown);
    let title = match limit {
        Some(limit) => format!(" {name}, up to {highest}; the line is max_size, {limit} "),
        None => format!(" {name}, up to {highest} "),
    };
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    let scale = highest.max(limit.unwrap_or_default()).max(1);
    let chart = Sparkline::default().data(&data).max(scale).style(Style::new().fg(color));
    frame.render_widget(chart.block(block), area);
    if let Some(limit) = limit {
        draw_line(frame, inner, limit, scale);
    }
}

/// A line at `value` of a chart as high as `scale`, where the chart is empty.
fn draw_line(frame: &mut Frame<'_>, area: Rect, value: u64, scale: u64) {
    let rows = (value * u64::from(area.height)).div_ceil(scale);
    let Ok(rows) = u16::try_from(rows) else { return };
    if rows == 0 || rows > area.height {
        return;
    }
    let y = area.bottom() - rows;
    for x in area.left()..area.right() {
        let cell = &mut frame.buffer_mut()[(x, y)];
        if cell.symbol() == " " {
            cell.set_symbol("─").set_fg(IDLE);
        }
    }
}

fn draw_counters(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let stats = &snapshot.stats;
    let lines = vec![
        Line::from(format!(
            "tasks:    {} completed   {} rejected by the full queue",
            stats.completed, stats.rejected
        )),
        Line::from(format!(
            "threads:  {} started   {} ended   {} at most at a time",
            stats.threads_started, stats.threads_retired, stats.peak_workers
        )),
    ];
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" since the start ")),
        area,
    );
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let state = match &snapshot.message {
        Some(message) => Line::from(message.as_str()).red(),
        None => Line::from(format!(
            "{} tasks per second, {} % of them in a blocking region",
            snapshot.rate, snapshot.blocking
        )),
    };
    let lines = vec![
        state,
        // A terminal may be as narrow as 60 columns.
        Line::from("up/down: load   left/right: blocking share"),
        Line::from("C/c: core_size   M/m: max_size   K/k: keep_alive"),
        Line::from("capital: more   space: pause   q: quit"),
    ];
    let title = if snapshot.is_paused { " load (paused) " } else { " load " };
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}
