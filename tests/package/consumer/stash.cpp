/// Uses the component `stash` alone. Exits with 0 if everything works.

#include <tensorpool/stash.hpp>

int main() {
    tensorpool::PooledAllocation block(1 << 20);
    for (float& value : block.as<float>()) value = 0.5F;
    tensorpool::Stash at_rest =
        tensorpool::stash(std::move(block), {.type = tensorpool::DataType::of<float>()});
    const bool is_small = at_rest.bytes_at_rest() < 1 << 16;
    block = at_rest.restore();
    return is_small && block.as<float>()[1000] == 0.5F ? 0 : 1;
}
