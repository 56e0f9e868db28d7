// Repeatedly loads and unloads a plugin, while threads that used it continue and end later.

#include <dlfcn.h>

#include <cstdio>
#include <future>
#include <thread>
#include <vector>

int main(int count, char** arguments) {
    if (count != 2) return 2;
    std::promise<void> unloaded;
    const std::shared_future<void> was_unloaded = unloaded.get_future().share();
    std::vector<std::thread> threads;
    for (unsigned round = 0; round < 5; ++round) {
        void* const plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (plugin == nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        const auto use = reinterpret_cast<unsigned long (*)()>(dlsym(plugin, "plugin_use"));
        if (use() != 1) return 3;
        std::promise<unsigned long> used;
        std::future<unsigned long> in_use = used.get_future();
        threads.emplace_back([&used, use, was_unloaded] {
            used.set_value(use());
            was_unloaded.wait();
        });
        if (in_use.get() != 1) return 4;
        dlclose(plugin);
    }
    unloaded.set_value();
    for (std::thread& thread : threads) thread.join();
    std::puts("threads ended after the plugin");
}
