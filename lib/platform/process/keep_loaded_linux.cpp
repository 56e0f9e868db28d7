#include "platform/process/keep_loaded.hpp"

#include <dlfcn.h>
#include <link.h>

#include "platform/system_calls.hpp"

namespace tensorpool::platform {

#ifdef __GLIBC__
bool keep_loaded() noexcept {
    const SystemCalls system_calls;
    Dl_info found{};
    void* map = nullptr;
    if (dladdr1(reinterpret_cast<void*>(keep_loaded), &found, &map, RTLD_DL_LINKMAP) == 0) {
        return false;
    }
    const char* const path = static_cast<const link_map*>(map)->l_name;
    if (*path == '\0') return true;  // the program itself
    // Looked up: the linker warns about each static program that names dlopen.
    const auto open = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_DEFAULT, "dlopen"));
    return open != nullptr && open(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}
#else  // musl never unloads
bool keep_loaded() noexcept {
    return true;
}
#endif

}  // namespace tensorpool::platform
