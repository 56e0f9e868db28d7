#include <tensorpool/device/current_stream.hpp>

#include <tensorpool/device/runtime.hpp>

#include "device/runtime/runtime_core.hpp"

namespace tensorpool {
namespace {

constinit thread_local const CurrentStreamScope* innermost = nullptr;

}  // namespace

CurrentStreamScope::CurrentStreamScope(const DeviceStream& stream) noexcept
    : CurrentStreamScope(*stream.core_, stream.handle()) {}

CurrentStreamScope::CurrentStreamScope(const Runtime& runtime, StreamHandle stream) noexcept
    : CurrentStreamScope(*runtime.core_, stream) {}

CurrentStreamScope::CurrentStreamScope(const device::RuntimeCore& core,
                                       StreamHandle stream) noexcept
    : core_(core), stream_(stream), outer_(innermost) {
    innermost = this;
}

CurrentStreamScope::~CurrentStreamScope() {
    innermost = outer_;
}

StreamHandle device::RuntimeCore::current_stream() const noexcept {
    for (const CurrentStreamScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
        if (&scope->core_ == this) return scope->stream_;
    }
    return nullptr;
}

}  // namespace tensorpool
