//! The stages between reading and writing, and their results.

use super::*;
use crate::stage::verify::TextsIn;

/// The results of the stages.
pub(super) struct StageResults {
    pub(super) read: Note<read::Read>,
    pub(super) exact: Note<exact::ExactResults>,
    pub(super) lookups: Option<Note<indexed::Lookups>>,
    pub(super) sites: Option<Note<sites::SiteResults>>,
    pub(super) candidates: Note<candidates::Candidates>,
    pub(super) verified: Note<verify::VerifyResults>,
    pub(super) clusters: Note<cluster::ClusterResults>,
}

impl StageResults {
    pub(super) fn find(
        job: &Job<'_>,
        read: Note<read::Read>,
        index: Option<&OpenIndex>,
    ) -> Result<Self, Error> {
        let Job {
            work,
            config,
            progress,
            ..
        } = job;
        let names = ["read", "exact", "lookup", "sites", "candidates", "verify"];
        let [
            read_in,
            exact_in,
            lookup_in,
            sites_in,
            candidates_in,
            verify_in,
        ] = names.map(|stage| work.path(stage));
        let texts = TextsIn {
            read: &read_in,
            sites: &sites_in,
        };
        let exact = work.stage("exact", progress, |folder| {
            exact::run(&read_in, config, folder, progress)
        })?;
        let lookups = index.map(|index| {
            work.stage("lookup", progress, |folder| {
                let stages = [&*read_in, &*exact_in];
                indexed::run(stages, index, &read.found, config, folder, progress)
            })
        });
        let lookups = lookups.transpose()?;
        let sites = match config.policy.criterion {
            Criterion::Content(_) => Some(work.stage("sites", progress, |folder| {
                let active = candidates::active(&read_in, &exact_in)?;
                let n_tokens = read.found.n_tokens;
                sites::run(&read_in, n_tokens, &active, config, folder, progress)
            })?),
            _ => None,
        };
        let candidates = work.stage("candidates", progress, |folder| {
            match config.policy.criterion {
                Criterion::Contained(_) => {
                    contained::candidates([&read_in, &exact_in], config, folder, progress)
                }
                Criterion::Url => candidates::none(folder),
                _ => candidates::run(&read_in, &exact_in, &sites_in, config, folder, progress),
            }
        })?;
        candidates::clean(&candidates_in)?;
        let verified = work.stage("verify", progress, |folder| match config.policy.criterion {
            Criterion::Contained(least) => {
                let n_slots = candidates.found.n_slots;
                let stages = [&*read_in, &*candidates_in];
                contained::verify(stages, n_slots, least, config, folder, progress)
            }
            _ => verify_candidates(&texts, &candidates_in, config, folder, progress),
        })?;
        let clusters = work.stage("cluster", progress, |folder| {
            if let Criterion::Contained(_) = config.policy.criterion {
                return contained::clusters([&read_in, &exact_in, &verify_in], config, folder);
            }
            let stages = cluster::Stages {
                texts,
                exact: &exact_in,
                verify: &verify_in,
                lookup: lookups.as_ref().map(|_| &*lookup_in),
            };
            cluster::run(&stages, config, folder, progress)
        })?;
        Ok(Self {
            read,
            exact,
            lookups,
            sites,
            candidates,
            verified,
            clusters,
        })
    }

    pub(super) fn stages(&self, rows: &Note<Rows>) -> Value {
        let n_docs = self.read.found.n_docs;
        let candidates = &self.candidates;
        let mut stages = vec![
            stage("read", &self.read, n_docs),
            stage("exact", &self.exact, n_docs),
        ];
        stages.extend(
            self.lookups
                .iter()
                .map(|lookups| stage("lookup", lookups, n_docs)),
        );
        stages.extend(self.sites.iter().map(|sites| stage("sites", sites, n_docs)));
        stages.extend([
            stage("candidates", candidates, candidates.found.tally.n_tested),
            stage("verify", &self.verified, candidates.found.n_pairs),
            stage("cluster", &self.clusters, self.verified.found.n_pairs),
            stage("write", rows, n_docs),
        ]);
        stages.into()
    }
}

/// Verifies the candidates, and the pairs that are only listed.
fn verify_candidates(
    texts: &TextsIn<'_>,
    candidates: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<verify::VerifyResults, Error> {
    let verified = verify::run(texts, candidates, config, folder, progress)?;
    if config.pairs == ListedPairs::Verified {
        return Ok(verified);
    }
    let all = folder.join(candidates::ALL);
    fs::create_dir_all(&all).map_err(Error::io("create", &all))?;
    let listed = candidates.join(candidates::ALL);
    verify::run(texts, &listed, config, &all, progress)?;
    Ok(verified)
}
