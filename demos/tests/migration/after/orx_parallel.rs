use std::num::NonZeroUsize;

use orx_parallel::Runner;

/// `.runner(on(&pool))`: orx-parallel's iterators run on the pool, or `on(&view)` on the view.
pub(crate) fn on(pool: &elastipool::ThreadPool) -> impl orx_parallel::ParRunner {
    Runner::adaptive_with_pool(OnElastipool(pool))
}

struct OnElastipool<'a>(&'a elastipool::ThreadPool);

#[derive(Clone, Copy)]
struct Submitter<'s, 'env>(&'s dyn Submit<'env>);

// The lifetime of elastipool's scope is not among those of the trait. So this forgets it.
trait Submit<'env> {
    fn submit(&self, work: Box<dyn FnOnce() + Send + 'env>);
}

impl<'scope, 'env> Submit<'env> for &'scope elastipool::Scope<'scope, 'env> {
    fn submit(&self, work: Box<dyn FnOnce() + Send + 'env>) {
        self.execute(work);
    }
}

impl<'s, 'env, 'scope> orx_parallel::Scope<'s, 'env, 'scope> for Submitter<'s, 'env> {
    fn run<W>(self, work: W)
    where
        'scope: 's,
        'env: 'scope + 's,
        W: FnOnce() + Send + 'scope + 'env,
    {
        self.0.submit(Box::new(work));
    }
}

impl orx_parallel::ThreadPool for OnElastipool<'_> {
    type ScopeRef<'s, 'env, 'scope>
        = Submitter<'s, 'env>
    where
        'scope: 's,
        'env: 'scope + 's;

    fn scope<'env, 'scope, F>(&'env self, f: F)
    where
        'env: 'scope,
        for<'s> F: FnOnce(Submitter<'s, 'env>) + Send,
    {
        self.0.scope(|scope: &elastipool::Scope<'_, 'env>| f(Submitter(&scope)));
    }

    fn max_num_threads(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.stats().allowed).unwrap_or(NonZeroUsize::MIN)
    }
}
