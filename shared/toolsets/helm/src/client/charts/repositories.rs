//! The repositories of one tenant, for the length of one call.

use super::archive::{self, ChartContents};
use super::cache::Archive;
use super::credential::Basic;
use super::failures::{bad_archive, full, no_chart, no_registry, no_version, not_the_chart, taken};
use super::index::{self, ChartIndex, ChartVersion, best, newest};
use super::indexes::{FetchedIndex, IndexSlot};
use super::oci::Pull;
use super::place::{ChartSource, Registry};
use super::range::{Range, version};
use super::web::{ChartRequest, refused, unreachable};
use super::{ChartRef, ChartRepository, Charts, records};
use domain::json::sha256_hex;
use domain::outcome::near;
use domain::{Code, Effect, Failure, Moment};
use egress::Url;
use policy::{Permit, PermitMode};
use std::sync::Arc;
use std::time::Duration;

/// How long an index is believed.
const FRESH: Duration = Duration::from_secs(600);
/// How old an index must be before something that is not in it is looked for again.
const SETTLED: Duration = Duration::from_secs(15);
/// How many repositories a tenant may have.
const MOST: usize = 32;
/// The repositories of the permit's tenant.
#[derive(Debug)]
pub struct Repositories<'p> {
    charts: Charts,
    permit: &'p Permit,
}

/// Where a repository was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryOrigin {
    /// In the tenant's file.
    File,
    /// By `helm_repo`.
    Added,
}

/// A repository the tenant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRepository {
    /// Which.
    pub repository: ChartRepository,
    /// Where it was named.
    pub origin: RepositoryOrigin,
}

/// What adding a repository would mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryCheck {
    /// The host it is at.
    pub host: String,
    /// How many charts it has; a registry does not say.
    pub charts: Option<usize>,
    /// Charts of that name that another repository has too.
    pub clashes: Vec<String>,
    /// Whether it is there already, exactly so.
    pub there: bool,
}

impl<'p> Repositories<'p> {
    pub(in crate::client) fn new(charts: Charts, permit: &'p Permit) -> Repositories<'p> {
        Repositories { charts, permit }
    }

    /// Those of the tenant's file, then those that were added.
    pub async fn list(&self) -> Result<Vec<TenantRepository>, Failure> {
        let listed = |origin| move |repository: ChartRepository| TenantRepository { repository, origin };
        let mut all: Vec<TenantRepository> =
            self.charts.own.repositories.iter().cloned().map(listed(RepositoryOrigin::File)).collect();
        for added in records::read(&self.shelf()).await? {
            // The file came later and wins; an admin wrote it.
            if !all.iter().any(|known| known.repository.name == added.name) {
                all.push(listed(RepositoryOrigin::Added)(added));
            }
        }
        Ok(all)
    }

    /// What a repository says it has. A registry has no index.
    pub async fn index(
        &self,
        repository: &ChartRepository,
        refresh: bool,
    ) -> Result<Option<Arc<FetchedIndex>>, Failure> {
        match self.place(repository)? {
            ChartSource::Index(url) => {
                self.indexed(repository, &url, if refresh { Duration::ZERO } else { FRESH }).await.map(Some)
            }
            ChartSource::Registry(_) => Ok(None),
        }
    }

    /// When the index at hand was fetched, if there is one.
    pub fn fetched_at(&self, repository: &ChartRepository) -> Option<Moment> {
        let slot = self.slot(repository);
        slot.try_lock().ok()?.as_ref().map(|fetched| fetched.at)
    }

    /// The archive of the version a range means, its digest checked and its contents looked through.
    pub async fn fetch(&self, chart: &ChartRef, range: &Range) -> Result<Archive, Failure> {
        match chart {
            ChartRef::Named { repository, name } => {
                let repository = self.get(repository).await?;
                match self.place(&repository)? {
                    ChartSource::Index(url) => self.by_index(&repository, &url, name, range).await,
                    ChartSource::Registry(registry) => {
                        let path = [registry.path.as_str(), name].join("/");
                        self.by_registry(&repository, &registry, path.trim_start_matches('/'), range).await
                    }
                }
            }
            ChartRef::Oci { authority, path } => {
                let mut fits = Vec::new();
                for listed in self.list().await? {
                    if let Ok(ChartSource::Registry(registry)) = self.place(&listed.repository)
                        && registry.covers(authority, path)
                    {
                        fits.push((registry, listed.repository));
                    }
                }
                // The narrowest one says which credential is meant.
                let found = fits.into_iter().max_by_key(|(registry, _)| registry.path.len());
                let (registry, repository) = found.ok_or_else(no_registry)?;
                self.by_registry(&repository, &registry, path, range).await
            }
        }
    }

    /// What adding a repository would mean: it is asked once, and nothing is kept.
    pub async fn rehearse(&self, repository: &ChartRepository) -> Result<RepositoryCheck, Failure> {
        let there = self.admissible(repository, &self.list().await?)?;
        let place = self.place(repository)?;
        let (host, charts, clashes) = match &place {
            ChartSource::Index(url) => {
                let fetched = self.indexed(repository, url, FRESH).await?;
                let clashes = self.clashes(repository, &fetched.index).await?;
                (url.host_str().unwrap_or_default().to_owned(), Some(fetched.index.len()), clashes)
            }
            ChartSource::Registry(registry) => {
                self.pull(repository, registry, &registry.path)?.greet().await?;
                (registry.authority.clone(), None, Vec::new())
            }
        };
        Ok(RepositoryCheck { host, charts, clashes, there })
    }

    /// Adds a repository. One that is there already, exactly so, stays as it is.
    pub async fn add(&self, repository: &ChartRepository) -> Result<RepositoryCheck, Failure> {
        self.may_act()?;
        let checked = self.rehearse(repository).await?;
        records::change(&self.shelf(), |added| {
            if added.contains(repository) {
                return Ok(());
            }
            if added.len() + self.charts.own.repositories.len() >= MOST {
                return Err(full(MOST));
            }
            match added.iter().any(|other| other.name == repository.name) {
                true => Err(taken(&repository.name)),
                false => {
                    added.push(repository.clone());
                    Ok(())
                }
            }
        })
        .await?;
        Ok(checked)
    }

    /// Removes an added repository. One that is gone already is no failure, so that a repeated removal is none.
    pub async fn remove(&self, name: &str) -> Result<(), Failure> {
        self.may_act()?;
        self.removable(name)?;
        records::change(&self.shelf(), |added| {
            added.retain(|repository| repository.name != name);
            Ok(())
        })
        .await
    }

    /// Wants a repository of this name that is not of the tenant's file.
    pub fn removable(&self, name: &str) -> Result<(), Failure> {
        match self.charts.own.repositories.iter().any(|own| own.name == name) {
            true => Err(Failure::new(kubernetes::codes::PROTECTED, "this repository is in the tenant's file")
                .next("ask an admin of the tenant to take it out of the file")),
            false => Ok(()),
        }
    }

    /// The repository of this name.
    pub async fn get(&self, name: &str) -> Result<ChartRepository, Failure> {
        let all = self.list().await?;
        match all.iter().find(|listed| listed.repository.name == name) {
            Some(listed) => Ok(listed.repository.clone()),
            None if all.is_empty() => {
                Err(Failure::new(target::codes::TOOLSET_NOT_CONFIGURED, "the tenant has no chart repository")
                    .next("ask an admin of the tenant to configure one, or add one with helm_repo"))
            }
            None => {
                let names = all.iter().map(|listed| listed.repository.name.as_str());
                Err(Failure::new(Code::NotFound, "the tenant has no repository of that name")
                    .next("list the repositories with helm_search")
                    .did_you_mean(near(name, names)))
            }
        }
    }

    fn may_act(&self) -> Result<(), Failure> {
        match (self.permit.extent(), self.permit.effect()) {
            (PermitMode::Act, Effect::Change | Effect::Disrupt) => Ok(()),
            (PermitMode::Rehearse, _) | (PermitMode::Act, Effect::Read) => {
                Err(Failure::new(Code::Internal, "repositories are changed by approved calls only"))
            }
        }
    }

    /// Whether a repository of this name and address could be added; and whether it is there already.
    fn admissible(&self, repository: &ChartRepository, all: &[TenantRepository]) -> Result<bool, Failure> {
        match all.iter().find(|listed| listed.repository.name == repository.name) {
            Some(same) if same.repository == *repository => Ok(true),
            Some(_) => Err(taken(&repository.name)),
            None if all.len() >= MOST => Err(full(MOST)),
            None => Ok(false),
        }
    }

    async fn clashes(&self, new: &ChartRepository, index: &ChartIndex) -> Result<Vec<String>, Failure> {
        let mut clashes = Vec::new();
        for listed in self.list().await?.iter().filter(|listed| listed.repository.name != new.name) {
            // Only those at hand: nobody waits for other repositories here.
            let slot = self.slot(&listed.repository);
            let Ok(Some(other)) = slot.try_lock().map(|held| held.clone()) else { continue };
            let both = index.charts().filter(|(name, _)| other.index.find(name).is_some());
            clashes.extend(both.map(|(name, _)| format!("{}/{name}", listed.repository.name)).take(20));
        }
        Ok(clashes)
    }

    async fn indexed(
        &self,
        repository: &ChartRepository,
        url: &Url,
        fresh: Duration,
    ) -> Result<Arc<FetchedIndex>, Failure> {
        let slot = self.slot(repository);
        // Held while fetching: whoever comes meanwhile gets what is fetched now.
        let mut held = slot.lock().await;
        if let Some(fetched) = held.as_ref().filter(|fetched| fetched.since.elapsed() < fresh) {
            return Ok(Arc::clone(fetched));
        }
        let credential = self.credential(repository)?;
        let index_url = url.join("index.yaml").map_err(|_| unreachable(url))?;
        let authorization = credential.as_ref().map(Basic::header);
        let ask = ChartRequest { url: &index_url, accept: None, authorization, cap: index::MOST_BYTES };
        let answer = self.charts.shared.web.ask(self.permit.tenant(), &ask).await?;
        if answer.status != 200 {
            return Err(refused(answer.status, url));
        }
        let bytes = answer.body.len();
        let index =
            blocking(move || std::str::from_utf8(&answer.body).ok().and_then(|text| ChartIndex::parse(text).ok()))
                .await?;
        let index = index.ok_or_else(|| {
            Failure::new(crate::codes::REPO_UNREACHABLE, "the repository's index cannot be read within bounds")
                .next("ask an admin to check the repository")
        })?;
        let fetched = Arc::new(FetchedIndex::now(index, bytes));
        *held = Some(Arc::clone(&fetched));
        Ok(fetched)
    }

    async fn by_index(&self, from: &ChartRepository, url: &Url, name: &str, range: &Range) -> Result<Archive, Failure> {
        let mut fetched = self.indexed(from, url, FRESH).await?;
        if pick(&fetched.index, name, range).is_err() && fetched.since.elapsed() > SETTLED {
            fetched = self.indexed(from, url, Duration::ZERO).await?;
        }
        let entry = pick(&fetched.index, name, range)?;
        if let Some(digest) = &entry.digest
            && let Some(archive) = self.kept(digest, name, &entry.version).await?
        {
            return Ok(archive);
        }
        let place = url.join(&entry.url).map_err(|_| not_the_chart("its address cannot be read"))?;
        let credential = self.credential(from)?.filter(|_| place.origin() == url.origin());
        let authorization = credential.as_ref().map(Basic::header);
        let ask = ChartRequest { url: &place, accept: None, authorization, cap: archive::MOST_BYTES };
        let answer = self.charts.shared.web.download(self.permit.tenant(), &ask).await?;
        match answer.status {
            200 => {}
            404 => return Err(no_chart(name, Vec::new())),
            status => return Err(refused(status, &place)),
        }
        if entry.digest.as_ref().is_some_and(|digest| *digest != sha256_hex(&answer.body)) {
            return Err(not_the_chart("its digest is another than the index says"));
        }
        self.keep(answer.body, name, &entry.version).await
    }

    async fn by_registry(
        &self,
        from: &ChartRepository,
        registry: &Registry,
        path: &str,
        range: &Range,
    ) -> Result<Archive, Failure> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let pull = self.pull(from, registry, path)?;
        let layer = pull.find(range).await?;
        match self.kept(&layer.sha256, name, &layer.version).await? {
            Some(archive) => Ok(archive),
            None => self.keep(pull.fetch(&layer).await?, name, &layer.version).await,
        }
    }

    fn pull<'a>(&'a self, from: &ChartRepository, registry: &'a Registry, path: &'a str) -> Result<Pull<'a>, Failure> {
        let credential = self.credential(from)?;
        Ok(Pull { web: &self.charts.shared.web, tenant: self.permit.tenant(), registry, path, credential })
    }

    /// An archive that lies here already.
    async fn kept(&self, sha256: &str, name: &str, version: &str) -> Result<Option<Archive>, Failure> {
        let (charts, tenant, sha256) = (self.charts.clone(), self.permit.tenant().clone(), sha256.to_owned());
        match blocking(move || charts.shared.cache.find(&tenant, &sha256)).await? {
            Some(bytes) => self.keep(bytes, name, version).await.map(Some),
            None => Ok(None),
        }
    }

    /// Looks an archive through and puts it where helm finds it.
    async fn keep(&self, bytes: Vec<u8>, name: &str, spelled: &str) -> Result<Archive, Failure> {
        let (charts, tenant) = (self.charts.clone(), self.permit.tenant().clone());
        let (name, spelled) = (name.to_owned(), spelled.to_owned());
        blocking(move || {
            let contents = archive::inspect(&bytes).map_err(bad_archive)?;
            agrees(&contents, &name, &spelled)?;
            charts.shared.cache.keep(&tenant, &bytes, contents).map_err(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "an archive cannot be kept");
                Failure::new(Code::Internal, "the archive cannot be written to the folder for charts")
            })
        })
        .await?
    }

    fn place(&self, repository: &ChartRepository) -> Result<ChartSource, Failure> {
        self.charts.shared.web.limits.place(&repository.url)
    }

    fn credential(&self, repository: &ChartRepository) -> Result<Option<Basic>, Failure> {
        let read = |name: &String| Basic::read(&self.charts.own.secrets, name, &repository.url);
        repository.credential.as_ref().map(read).transpose()
    }

    fn shelf(&self) -> store::TenantStore {
        self.charts.shared.store.of(self.permit.tenant())
    }

    /// The place of one index.
    fn slot(&self, repository: &ChartRepository) -> IndexSlot {
        self.charts.shared.indexes.slot(self.permit.tenant(), repository)
    }
}

fn pick<'a>(index: &'a ChartIndex, name: &str, range: &Range) -> Result<&'a ChartVersion, Failure> {
    let entries = index.find(name).ok_or_else(|| no_chart(name, near(name, index.charts().map(|(name, _)| name))))?;
    let spelled = || entries.iter().map(|entry| &entry.version);
    best(entries, range).ok_or_else(|| no_version(name, range, &newest(spelled(), 3)))
}

/// A chart that calls itself otherwise is another chart.
fn agrees(contents: &ChartContents, name: &str, spelled: &str) -> Result<(), Failure> {
    match contents.name == name && version(&contents.version) == version(spelled) {
        true => Ok(()),
        false => Err(not_the_chart("it has another name or version inside")),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::new(Code::Internal, "the work on an archive broke off"))
}
