/// The program of a user: uses exported functions, inline and out of line, and throws and casts
/// across the boundary of the library. Exits with 0 if everything works.

#include <cstdio>
#include <memory_resource>
#include <thread>
#include <vector>

#include <tensorpool/tensorpool.hpp>

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "expected: %s\n", what);
    ++failures;
}

void use_containers(tensorpool::MemoryPool& pool) {
    std::vector<float, tensorpool::Allocator<float>> values(1000, 1.0F, pool);
    tensorpool::PoolResource resource(pool);
    tensorpool::PoolResource same(pool);
    std::pmr::vector<int> numbers(1000, 7, &resource);
    const tensorpool::PooledArray<double> array(pool, 1000);
    const auto object = tensorpool::make_pooled_unique<int>(pool, 7);
    expect(pool.owns(values.data()) && pool.owns(numbers.data()), "containers in the pool");
    expect(pool.owns(array.data()) && pool.owns(object.get()), "handles in the pool");
    expect(resource.is_equal(same), "resources of one pool are equal");
}

void expect_failure_of_a_large_request(tensorpool::MemoryPool& pool) {
    try {
        pool.deallocate(pool.allocate(std::size_t{1} << 30));
        expect(false, "a request beyond the limit throws");
    } catch (const tensorpool::AllocationError& error) {
        expect(error.asked() == std::size_t{1} << 30, "the size of the request");
    }
}

}  // namespace

int main() {
    tensorpool::MemoryPool pool(
        tensorpool::PoolOptions{.name = "consumer", .max_capacity = std::size_t{256} << 20});
    use_containers(pool);
    use_containers(tensorpool::get_global_memory_pool());
    std::thread([&pool] { use_containers(pool); }).join();
    expect_failure_of_a_large_request(pool);
    expect(pool.get_total_allocated() == 0, "nothing left in use");
    std::fputs(to_text(pool.statistics()).c_str(), stdout);
    return failures == 0 ? 0 : 1;
}
