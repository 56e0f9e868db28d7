/// Loads the shared library at run time, as interpreters do, and unloads it while a thread that
/// used it is still running.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

#include <tensorpool/tensorpool.h>

namespace {

template <class Function>
Function* look_up(void* library, const char* name) {
    void* const found = dlsym(library, name);
    if (found != nullptr) return reinterpret_cast<Function*>(found);
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const auto global = look_up<decltype(tensorpool_global)>(library, "tensorpool_global");
    const auto allocate = look_up<decltype(tensorpool_allocate)>(library, "tensorpool_allocate");
    const auto deallocate =
        look_up<decltype(tensorpool_deallocate)>(library, "tensorpool_deallocate");

    std::promise<void> used;
    std::promise<void> let_go;
    bool got_blocks = true;
    std::thread thread([&] {
        for (std::size_t bytes = 1; bytes <= (std::size_t{1} << 24); bytes *= 2) {
            void* const block = allocate(global(), bytes);
            got_blocks = got_blocks && block != nullptr;
            deallocate(global(), block);
        }
        allocate(nullptr, 1);  // leaves an error text to free at the thread's end
        used.set_value();
        let_go.get_future().wait();
    });
    used.get_future().wait();
    dlclose(library);
    let_go.set_value();
    thread.join();
    return got_blocks ? 0 : 1;
}
