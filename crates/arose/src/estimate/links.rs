//! Links between pages, stored in two arrays.
//!
//! *Question.* How can a web of millions of links be stored for walks and ranks on a small machine?
//! *Idea.* Store all targets one after another, and for each page the end of its targets: four
//! bytes per link and eight per page. A vector per page would need three times that, and one more
//! memory access per step. *Not for* graphs that change: pages are added in order, once.

/// The pages that each page links to. Pages are numbered from zero.
///
/// ```
/// use arose::estimate::links::Links;
/// let links: Links = [vec![1, 2], vec![2], vec![]].into_iter().collect();
/// assert_eq!((links.n_pages(), links.n_links(), links.of(0)), (3, 3, &[1, 2][..]));
/// assert_eq!(links.in_degrees(), [0, 1, 2]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// The end of the links of each page.
    ends: Vec<usize>,
    targets: Vec<u32>,
}

impl Links {
    /// Adds the next page.
    pub fn push(&mut self, targets: impl IntoIterator<Item = u32>) {
        self.targets.extend(targets);
        self.ends.push(self.targets.len());
    }

    /// Returns the number of pages.
    #[must_use]
    pub const fn n_pages(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of links.
    #[must_use]
    pub const fn n_links(&self) -> usize {
        self.targets.len()
    }

    /// Returns the pages that a page links to; none if there is no such page.
    #[must_use]
    pub fn of(&self, page: u32) -> &[u32] {
        let page = page as usize;
        let Some(&end) = self.ends.get(page) else {
            return &[];
        };
        let start = if page == 0 { 0 } else { self.ends[page - 1] };
        &self.targets[start..end]
    }

    /// Returns the links of each page, in order.
    pub fn rows(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let each = starts.zip(&self.ends);
        each.map(|(&start, &end)| &self.targets[start..end])
    }

    /// Returns all links, those of the first page first.
    #[must_use]
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// Returns the number of links to each page.
    #[must_use]
    pub fn in_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.n_pages()];
        for &target in &self.targets {
            if let Some(degree) = degrees.get_mut(target as usize) {
                *degree += 1;
            }
        }
        degrees
    }

    /// Returns for each page whether some seed leads to it; seeds that are not pages are ignored.
    #[must_use]
    pub fn reachable(&self, seeds: &[u32]) -> Vec<bool> {
        let mut reached = vec![false; self.n_pages()];
        let mut open: Vec<u32> = seeds.to_vec();
        while let Some(page) = open.pop() {
            let is_new = reached
                .get_mut(page as usize)
                .is_some_and(|reached| !std::mem::replace(reached, true));
            if is_new {
                open.extend(self.of(page));
            }
        }
        reached
    }

    /// Returns the graph in which every link leads both ways. The links of the page itself come
    /// first.
    #[must_use]
    pub fn both_ways(&self) -> Self {
        let mut ends: Vec<usize> = self.rows().map(<[u32]>::len).collect();
        for &target in &self.targets {
            if let Some(degree) = ends.get_mut(target as usize) {
                *degree += 1;
            }
        }
        let mut free = Vec::with_capacity(ends.len());
        let mut end = 0;
        for degree in &mut ends {
            free.push(end);
            end += *degree;
            *degree = end;
        }
        let mut targets = vec![0; end];
        for (row, free) in self.rows().zip(&mut free) {
            targets[*free..*free + row.len()].copy_from_slice(row);
            *free += row.len();
        }
        for (row, page) in self.rows().zip(0..) {
            for &target in row {
                if let Some(free) = free.get_mut(target as usize) {
                    targets[*free] = page;
                    *free += 1;
                }
            }
        }
        Self { ends, targets }
    }
}

impl<R: IntoIterator<Item = u32>> FromIterator<R> for Links {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let mut links = Self::default();
        rows.into_iter().for_each(|row| links.push(row));
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reachability() {
        let links: Links = [vec![1], vec![2, 0], vec![], vec![0]].into_iter().collect();
        assert_eq!(links.reachable(&[0]), [true, true, true, false]);
        assert_eq!(links.reachable(&[2, 77]), [false, false, true, false]);
        assert_eq!(links.reachable(&[]), [false; 4]);
        assert_eq!(links.both_ways().of(0), [1, 1, 3]);
        assert_eq!(links.of(4), []);
    }

    /// A page that was never added has no links, and links to it do not count.
    #[test]
    fn links_to_nowhere() {
        let links: Links = [vec![7], vec![0]].into_iter().collect();
        assert_eq!(links.in_degrees(), [1, 0]);
        assert_eq!(links.reachable(&[1]), [true, true]);
        assert_eq!(links.both_ways().of(0), [7, 1]);
    }

    proptest! {
        /// The same as a vector of vectors.
        #[test]
        fn rows_of_their_own(
            rows in prop::collection::vec(prop::collection::vec(0_u32..9, 0..4), 9),
        ) {
            let links: Links = rows.iter().cloned().collect();
            prop_assert!(links.rows().eq(rows.iter().map(Vec::as_slice)));
            let mut both = rows.clone();
            for (page, row) in rows.iter().enumerate() {
                prop_assert_eq!(links.of(page as u32), &row[..]);
                row.iter().for_each(|&target| both[target as usize].push(page as u32));
            }
            prop_assert!(links.both_ways().rows().eq(both.iter().map(Vec::as_slice)));
            let degrees: Vec<u32> = both.iter().zip(&rows)
                .map(|(both, row)| (both.len() - row.len()) as u32)
                .collect();
            prop_assert_eq!(links.in_degrees(), degrees);
        }
    }
}
