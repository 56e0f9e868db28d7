// A program that loads a plugin with RTLD_DEEPBIND, by its name alone, from the folder that the
// program's RUNPATH names. Blocks of each are freed by the other.

#include "interpose/interposed.hpp"

using namespace tensorpool::testing;

int main() {
    expect_interposed();
    void* const plugin = dlopen("libinterposed_deep_plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    if (plugin == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const auto give = reinterpret_cast<void* (*)(std::size_t)>(dlsym(plugin, "give_block"));
    const auto take = reinterpret_cast<void (*)(void*)>(dlsym(plugin, "take_block"));
    for (const std::size_t bytes : {100, 3000, 70'000, 300'000, 5'000'000}) {
        void* const given = give(bytes);
        expect(is_of_pool(given) == (bytes >= minimum()), "the plugin to use the pool", bytes);
        std::free(given);
        take(std::malloc(bytes));
        take(strdup("text"));
    }
    expect(dlopen("libnot_there.so", RTLD_NOW | RTLD_DEEPBIND) == nullptr, "no such library");
    expect(std::strstr(dlerror(), "libnot_there.so") != nullptr, "an error that names it");
    return failures;
}
