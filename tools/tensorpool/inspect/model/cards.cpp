#include "inspect/model/cards.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <utility>

namespace tensorpool::command::model {
namespace {

constexpr const char* library_name = "libnvidia-ml.so.1";

/// NVML, with the types and functions of NVIDIA's "NVML API Reference Guide". All functions throw
/// std::runtime_error with the reason if NVML fails.
class Nvml {
public:
    Nvml() {
        if (library_ == nullptr)
            throw std::runtime_error(std::string("NVML cannot be loaded: ") + dlerror());
        call<>("nvmlInit_v2");
    }
    ~Nvml() { (void)find<>("nvmlShutdown")(); }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    unsigned count() const {
        unsigned count = 0;
        call<unsigned*>("nvmlDeviceGetCount_v2", &count);
        return count;
    }
    DeviceMemory card(unsigned index) const {
        Card* card = nullptr;
        call<unsigned, Card**>("nvmlDeviceGetHandleByIndex_v2", index, &card);
        char name[name_bytes] = {};
        call<Card*, char*, unsigned>("nvmlDeviceGetName", card, name, name_bytes);
        Memory memory{};
        call<Card*, Memory*>("nvmlDeviceGetMemoryInfo", card, &memory);
        return {name, memory.free, memory.total};
    }

private:
    struct Card;
    struct Memory {
        unsigned long long total;
        unsigned long long free;
        unsigned long long used;
    };
    static constexpr int success = 0;
    static constexpr unsigned name_bytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE

    template <class... Arguments>
    using Function = int (*)(Arguments...);

    template <class... Arguments>
    Function<Arguments...> find(const char* name) const {
        void* const found = dlsym(library_, name);
        if (found == nullptr)
            throw std::runtime_error(std::string(library_name) + " has no " + name);
        return reinterpret_cast<Function<Arguments...>>(found);
    }
    template <class... Arguments>
    void call(const char* name, Arguments... arguments) const {
        const int result = find<Arguments...>(name)(arguments...);
        if (result == success) return;
        const auto error_text =
            reinterpret_cast<const char* (*)(int)>(dlsym(library_, "nvmlErrorString"));
        throw std::runtime_error(std::string(name) + ": " +
                                 (error_text != nullptr ? error_text(result) : "failed"));
    }

    void* const library_ = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
};

}  // namespace

void find_card(AvailableMemory& memory) try {
    const Nvml nvml;
    const unsigned count = nvml.count();
    memory.why_no_device = "NVML reports no card";
    for (unsigned index = 0; index < count; ++index) {
        try {
            DeviceMemory card = nvml.card(index);
            if (!memory.device || memory.device->available < card.available)
                memory.device = std::move(card);
        } catch (const std::runtime_error& error) {
            memory.why_no_device = error.what();  // such as a lost card; another one may serve
        }
    }
    if (memory.device) memory.why_no_device.clear();
} catch (const std::runtime_error& error) {
    memory.why_no_device = error.what();
}

}  // namespace tensorpool::command::model
