#include <tensorpool/device/pool_source.hpp>

#include <tensorpool/device/empty.hpp>
#include <tensorpool/device/runtimes.hpp>

namespace tensorpool {

void* PoolSource::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    return pool_->try_allocate(bytes, alignment);
}

void PoolSource::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
    pool_->deallocate(memory, bytes, alignment);
}

std::size_t PoolSource::trim() noexcept {
    return pool_->trim();
}

void use_pool_on_cpu(MemoryPool& pool) {
    RuntimeOptions options = get_runtime_options(DeviceType::cpu);
    options.host_source = std::make_shared<PoolSource>(pool);
    set_runtime_options(DeviceType::cpu, options);
}

TensorAllocation empty(std::vector<std::int64_t> shape, DataType type, Device device,
                       std::optional<StreamHandle> stream) {
    if (device == Device{}) return empty(std::move(shape), type);
    const Runtime& runtime = get_runtime(device);
    const StreamHandle used = stream ? *stream : runtime.current_stream();
    return empty(runtime.allocator(), std::move(shape), type, used);
}

}  // namespace tensorpool
