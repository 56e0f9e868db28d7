#include "device/runtime/runtime_core.hpp"

#include <map>

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/current_stream.hpp>
#include <tensorpool/device/host_backend.hpp>

#include "device/device_types.hpp"

namespace tensorpool::device {
namespace {

/// The number of devices of a type whose runtimes are found without a lock.
constexpr int quick_devices = 16;

using Runtimes = std::vector<std::unique_ptr<Runtime>>;

/// A backend or runtime is made under the lock of its type; only the backend's code runs under that
/// lock. Order of locks: the lock of another type, then the CPU's.
struct Type {
    std::mutex mutex;  // guards what follows, except `quick`
    std::shared_ptr<Backend> backend;
    bool was_set = false;  // by set_backend
    RuntimeOptions options;
    std::map<int, RuntimeOptions> options_of_one;  // by index; other devices use `options`
    Runtimes runtimes;                             // by index; nullptr if not made yet
    // Release: pairs with the acquire in `runtime_if_made`, so that the whole runtime is visible.
    std::atomic<Runtime*> quick[quick_devices] = {};
};

struct Registry {
    Type types[max_device_types];
    const std::uint64_t forks = forks_seen.load(std::memory_order_relaxed);
};

constinit std::atomic<Registry*> the_registry{nullptr};

Registry& make_registry(Registry* before) {
    watch_forks();
    auto made = std::make_unique<Registry>();
    // Release: pairs with the acquire in `registry`. The registry of the parent process is left
    // untouched.
    if (the_registry.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel)) {
        return *made.release();
    }
    return *before;
}

/// Returns the registry of this process. It is made at its first use, and again in the child of a
/// fork, and never destroyed. Throws std::bad_alloc.
Registry& registry() {
    Registry* const made = the_registry.load(std::memory_order_acquire);
    if (made != nullptr && is_ours(made->forks)) [[likely]]
        return *made;
    return make_registry(made);
}

Type& type_of(DeviceType type) {
    const auto number = static_cast<std::size_t>(type);
    if (number < max_device_types) return registry().types[number];
    throw std::invalid_argument("tensorpool: there is no device type with number " +
                                std::to_string(number) + ": expected less than " +
                                std::to_string(max_device_types));
}

std::shared_ptr<Backend> make_backend(DeviceType type) {
    if (type == DeviceType::cpu) return std::make_shared<HostBackend>();
    if (type == DeviceType::cuda) return std::make_shared<CudaBackend>();
    return nullptr;
}

// Returns nullptr if the type has no backend. REQUIRES: the type's lock.
Backend* backend_of(DeviceType name, Type& type) {
    if (type.backend == nullptr) type.backend = make_backend(name);
    return type.backend.get();
}

// Returns the backend's reason, such as a missing driver, or "".
std::string why_none(DeviceType name) {
    Type& type = type_of(name);
    const std::lock_guard guard(type.mutex);
    Backend* const backend = backend_of(name, type);
    const std::string reason = backend != nullptr ? backend->last_error() : std::string();
    return reason.empty() ? reason : "; " + reason;
}

// REQUIRES: the type's lock.
Runtime* made_runtime(const Type& type, int index) noexcept {
    const auto number = static_cast<std::size_t>(index);
    return number < type.runtimes.size() ? type.runtimes[number].get() : nullptr;
}

// REQUIRES: the type's lock.
RuntimeOptions options_for(Device device, const Type& type) {
    const auto own = type.options_of_one.find(device.index);
    RuntimeOptions options = own != type.options_of_one.end() ? own->second : type.options;
    if (options.host_source == nullptr && device.type != DeviceType::cpu) {
        options.host_source = get_runtime_options(DeviceType::cpu).host_source;
    }
    return options;
}

Runtime& make_runtime(Device device) {
    check_device(device);
    Type& type = type_of(device.type);
    const std::lock_guard guard(type.mutex);
    backend_of(device.type, type);
    const auto index = static_cast<std::size_t>(device.index);
    if (type.runtimes.size() <= index) type.runtimes.resize(index + 1);
    std::unique_ptr<Runtime>& runtime = type.runtimes[index];
    if (runtime == nullptr) {
        runtime = std::make_unique<Runtime>(type.backend, device, options_for(device, type));
        if (device.index < quick_devices) {
            type.quick[index].store(runtime.get(), std::memory_order_release);
        }
        note_device_change();  // threads may have another current device from now on
    }
    return *runtime;
}

Runtimes take_runtimes(Type& type) {
    for (std::atomic<Runtime*>& quick : type.quick) quick.store(nullptr, std::memory_order_release);
    return std::exchange(type.runtimes, {});
}

void destroy_last_first(Runtimes& runtimes) {
    while (!runtimes.empty()) runtimes.pop_back();
}

[[noreturn]] void refuse_options(Device there) {
    throw std::logic_error("tensorpool: set_runtime_options: a runtime of " + to_string(there) +
                           " exists already; expected the call before its first use, or after "
                           "reset_runtimes");
}

struct Current {
    Device device;
    bool was_set;           // by set_current_device
    std::uint32_t changes;  // value of device_changes when it was last checked; 0: never
};
constinit thread_local Current current = {};

/// Makes no call to CUDA's driver.
Device first_device() {
    if (has_runtime(DeviceType::cuda)) return {DeviceType::cuda, 0};
    if (device_count(DeviceType::simulated) > 0) return {DeviceType::simulated, 0};
    return {DeviceType::cpu, 0};
}

Device look_again(std::uint32_t changes) {
    const bool stays = current.was_set && current.device.index < device_count(current.device.type);
    if (!stays) {
        current.device = first_device();
        current.was_set = false;
    }
    current.changes = changes;
    return current.device;
}

constinit thread_local const CurrentStreamScope* innermost = nullptr;

}  // namespace

Runtime* runtime_if_made(Device device) {
    const auto type = static_cast<std::size_t>(device.type);
    if (type >= max_device_types || device.index < 0 || device.index >= quick_devices) {
        return nullptr;
    }
    return registry().types[type].quick[device.index].load(std::memory_order_acquire);
}

bool has_runtime(DeviceType name) {
    Type& type = type_of(name);
    const std::lock_guard guard(type.mutex);
    return std::ranges::any_of(type.runtimes, [](auto& runtime) { return runtime != nullptr; });
}

void check_known(const Runtime& runtime) {
    const Device device = runtime.device();
    if (runtime_if_made(device) == &runtime) return;
    Type& type = type_of(device.type);
    const std::lock_guard guard(type.mutex);
    if (made_runtime(type, device.index) == &runtime) return;
    throw std::invalid_argument("tensorpool: this runtime of " + to_string(device) +
                                " is not the one that get_runtime returns; expected that one to "
                                "make its device current");
}

void check_device(Device device) {
    if (runtime_if_made(device) != nullptr) return;
    const int count = device_count(device.type);
    if (device.index >= 0 && device.index < count) return;
    throw std::invalid_argument("tensorpool: there is no device " + to_string(device) +
                                ": devices of type " + to_string(device.type) + ": " +
                                std::to_string(count) + (count == 0 ? why_none(device.type) : ""));
}

}  // namespace tensorpool::device

namespace tensorpool {

using namespace device;

Device current_device() {
    // Acquire: pairs with the release in note_device_change.
    const std::uint32_t changes = device_changes.load(std::memory_order_acquire);
    if (current.changes == changes) [[likely]]
        return current.device;
    return look_again(changes);
}

void set_current_device(Device device) {
    const std::uint32_t changes = device_changes.load(std::memory_order_acquire);
    device::check_device(device);
    current = {device, true, changes};
}

CurrentDeviceScope::CurrentDeviceScope(Device device)
    : before_(current_device()), was_set_(current.was_set) {
    set_current_device(device);
}

CurrentDeviceScope::~CurrentDeviceScope() {
    current.device = before_;
    current.was_set = was_set_;
    // The next call of current_device checks whether this device still exists.
    current.changes = 0;
}

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

int device_count(DeviceType name) {
    Type& type = type_of(name);
    const std::lock_guard guard(type.mutex);
    Backend* const backend = backend_of(name, type);
    return backend != nullptr ? backend->device_count() : 0;
}

Runtime& get_runtime(Device device) {
    if (Runtime* const made = runtime_if_made(device)) [[likely]]
        return *made;
    return make_runtime(device);
}

Runtime& runtime() {
    return get_runtime(current_device());
}

DeviceType register_device_type(std::string_view name, std::shared_ptr<Backend> backend) {
    if (backend == nullptr) {
        throw std::invalid_argument("tensorpool: register_device_type: found no backend for \"" +
                                    std::string(name) + "\", expected one");
    }
    const DeviceType type = device::device_types().add(name);
    set_backend(type, std::move(backend));
    return type;
}

void set_backend(DeviceType name, std::shared_ptr<Backend> backend) {
    Type& type = type_of(name);
    Runtimes old;
    {
        const std::lock_guard guard(type.mutex);
        old = take_runtimes(type);
        type.was_set = backend != nullptr;
        type.options_of_one.clear();  // they were for devices of the former backend
        type.backend.swap(backend);
    }
    note_device_change();
    destroy_last_first(old);
}

void set_runtime_options(DeviceType name, const RuntimeOptions& options) {
    Type& type = type_of(name);
    const std::lock_guard guard(type.mutex);
    for (const std::unique_ptr<Runtime>& runtime : type.runtimes) {
        if (runtime != nullptr) refuse_options(runtime->device());
    }
    type.options = options;
}

void set_runtime_options(Device device, const RuntimeOptions& options) {
    check_device(device);
    Type& type = type_of(device.type);
    const std::lock_guard guard(type.mutex);
    if (made_runtime(type, device.index) != nullptr) refuse_options(device);
    type.options_of_one[device.index] = options;
}

RuntimeOptions get_runtime_options(DeviceType name) {
    Type& type = type_of(name);
    const std::lock_guard guard(type.mutex);
    return type.options;
}

std::size_t trim_runtimes() noexcept try {
    std::size_t bytes = 0;
    for (Type& type : registry().types) {
        for (std::size_t index = 0;; ++index) {
            Runtime* runtime = nullptr;
            {
                const std::lock_guard guard(type.mutex);
                if (index >= type.runtimes.size()) break;
                runtime = type.runtimes[index].get();
            }
            if (runtime != nullptr) bytes += runtime->trim();
        }
    }
    return bytes;
} catch (...) {
    return 0;
}

void reset_runtimes() {
    // Accelerators first: objects of their runtimes may have memory of the CPU's runtime.
    static_assert(DeviceType::cpu == DeviceType{});
    for (std::size_t number = max_device_types; number-- > 0;) {
        Type& type = registry().types[number];
        Runtimes old;
        std::shared_ptr<Backend> backend;
        {
            const std::lock_guard guard(type.mutex);
            old = take_runtimes(type);
            if (!type.was_set) backend.swap(type.backend);
        }
        destroy_last_first(old);
    }
    note_device_change();
}

}  // namespace tensorpool
