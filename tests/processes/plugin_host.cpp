// Loads and unloads a plugin again and again. Threads that used it end after each dlclose.
//
// usage: plugin_host PLUGIN ROUNDS

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

namespace {

constexpr unsigned thread_count = 3;

bool is_loaded(const char* path) {
    void* const plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (plugin != nullptr) dlclose(plugin);
    return plugin != nullptr;
}

/// One round. The last thread of each round lives until `last` is set.
bool run(const char* path, const std::shared_future<void>& last,
         std::vector<std::thread>& remaining) {
    void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
        std::fprintf(stderr, "plugin_host: %s\n", dlerror());
        return false;
    }
    const auto use = reinterpret_cast<bool (*)()>(dlsym(plugin, "plugin_use"));
    std::promise<void> unloaded;
    const std::shared_future<void> was_unloaded = unloaded.get_future().share();
    std::vector<std::promise<bool>> used(thread_count);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i) {
        const std::shared_future<void> end = i + 1 == thread_count ? last : was_unloaded;
        threads.emplace_back([&used, i, use, end] {
            used[i].set_value(use());
            end.wait();
        });
    }
    bool works = use();
    for (std::promise<bool>& one : used) works &= one.get_future().get();
    works &= dlclose(plugin) == 0;
    unloaded.set_value();
    remaining.push_back(std::move(threads.back()));
    threads.pop_back();
    for (std::thread& thread : threads) thread.join();
    return works;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    std::promise<void> last;
    const std::shared_future<void> is_last = last.get_future().share();
    std::vector<std::thread> remaining;
    const int rounds = std::atoi(arguments[2]);
    int failures = 0;
    for (int round = 0; round < rounds; ++round) {
        failures += !run(arguments[1], is_last, remaining);
    }
    last.set_value();
    for (std::thread& thread : remaining) thread.join();
    std::printf("%d rounds, %d failures; the plugin %s\n", rounds, failures,
                is_loaded(arguments[1]) ? "stays loaded" : "is unloaded");
    return failures == 0 ? 0 : 1;
}
