use super::Route;
use crate::runtime::context::last_pool;

#[test]
fn a_thread_remembers_the_pool_of_its_last_handle() {
    let [first, second] = [(); 2].map(|()| crate::Builder::new().core_size(0).build());
    let is_last = |pool: &crate::ThreadPool| last_pool(pool.shared().id()).is_some();
    for pool in [&first, &second] {
        drop(Route::to_pool(pool.shared()).origin(None));
        assert_eq!([&first, &second].map(is_last), [&first, &second].map(|other| other == pool));
    }
}
