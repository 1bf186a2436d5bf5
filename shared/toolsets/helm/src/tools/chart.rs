//! What a call names: a chart, and a version or a range of versions.

use crate::client::charts::{Archive, ChartRef, Range, Repositories};
use domain::{Code, Failure};
use serde::{Deserialize, Serialize};
use target::checked_text;

checked_text!(
    /// A chart: `repo/name`, or `oci://host/path`.
    ChartText, |text| ChartRef::parse(text).is_some(), "a chart is repo/name or oci://host/path, without version or digest",
    { "type": "string", "minLength": 3, "maxLength": 512,
      "pattern": "^(oci://[a-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)+|[a-z0-9][a-z0-9-]*/[A-Za-z0-9][A-Za-z0-9._-]*)$" }
);

checked_text!(
    /// A version or a range.
    VersionText, |text| Range::parse(text).is_some(), "a version is 1.2.3, or a range such as ^1.2, ~1.2, >=1.2 <2 or 1.x",
    { "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[0-9A-Za-z.+*^~<>=|, -]+$" }
);

impl ChartText {
    /// The chart that is meant.
    pub(crate) fn chart(&self) -> Result<ChartRef, Failure> {
        let bad =
            || Failure::new(Code::InvalidArgument, "a chart is repo/name or oci://host/path").next("correct chart");
        ChartRef::parse(self.as_str()).ok_or_else(bad)
    }
}

/// The range that is meant; without one, the newest release.
pub(crate) fn range(version: Option<&VersionText>) -> Result<Range, Failure> {
    let bad =
        || Failure::new(Code::InvalidArgument, "a version is 1.2.3 or a range such as ^1.2").next("correct version");
    match version {
        None => Ok(Range::newest()),
        Some(text) => Range::parse(text.as_str()).ok_or_else(bad),
    }
}

/// Which archive a text was made of, and the line to go on with: a range may mean another version by now.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChartPageToken {
    v: String,
    d: String,
    /// The line.
    pub(crate) l: usize,
}

impl ChartPageToken {
    /// This line of what is made of this archive.
    pub(crate) fn at(archive: &Archive, line: usize) -> ChartPageToken {
        ChartPageToken { v: archive.version.clone(), d: archive.sha256.clone(), l: line }
    }
}

/// The archive that a call means; for one that goes on, the archive of its first page.
pub(crate) async fn archive(
    charts: &Repositories<'_>,
    chart: &ChartText,
    version: Option<&VersionText>,
    token: Option<&ChartPageToken>,
) -> Result<Archive, Failure> {
    let moved = || {
        Failure::new(target::codes::CURSOR_EXPIRED, "the chart is another one by now").next("call again without cursor")
    };
    let range = match token {
        Some(token) => Range::parse(&token.v).ok_or_else(moved)?,
        None => range(version)?,
    };
    let archive = charts.fetch(&chart.chart()?, &range).await?;
    match token {
        Some(token) if token.d != archive.sha256 => Err(moved()),
        Some(_) | None => Ok(archive),
    }
}
