#include "blocks/thread_caches.hpp"

namespace tensorpool::blocks {

constinit detail::ThreadCache empty_cache;
constinit detail::ThreadLeaf empty_leaf = leaf_of_empty_caches();
constinit OwnCaches no_own_caches = {};
constinit ThreadCaches no_caches;
constinit thread_local ThreadCaches* thread_caches TENSORPOOL_INITIAL_EXEC = &no_caches;

}  // namespace tensorpool::blocks

namespace tensorpool::detail {
inline namespace abi_2 {

constinit thread_local ThreadTable* thread_table TENSORPOOL_INITIAL_EXEC = &blocks::no_caches;

}  // namespace abi_2
}  // namespace tensorpool::detail
