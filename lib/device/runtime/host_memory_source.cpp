#include <tensorpool/device/host_memory_source.hpp>

#include <new>

namespace tensorpool {
namespace {

class SystemMemorySource final : public HostMemorySource {
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept override {
        return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    }
    void deallocate(void* memory, std::size_t, std::size_t alignment) noexcept override {
        ::operator delete(memory, std::align_val_t(alignment));
    }
};

}  // namespace

HostMemorySource::~HostMemorySource() = default;

std::size_t HostMemorySource::trim() noexcept {
    return 0;
}

std::shared_ptr<HostMemorySource> system_memory_source() {
    return std::make_shared<SystemMemorySource>();
}

}  // namespace tensorpool
