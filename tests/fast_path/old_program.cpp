// A program that was compiled with the headers of version 1 of the inline paths
// (include/tensorpool/detail). Those paths do not support magazines from which other threads take
// blocks back.

namespace tensorpool::detail {
inline namespace abi_1 {
struct ThreadTable;
extern constinit thread_local ThreadTable* thread_table;
}  // namespace abi_1
}  // namespace tensorpool::detail

int main() {
    return tensorpool::detail::thread_table == nullptr;
}
