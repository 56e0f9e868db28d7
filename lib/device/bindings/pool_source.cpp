#include <tensorpool/device/pool_source.hpp>

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

}  // namespace tensorpool
