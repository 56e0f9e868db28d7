// Two hundred threads that hand blocks to each other, resize and free them. Their thread-local
// objects allocate and free when the threads end. Other threads fork, and load and unload a plug-in
// in C++.

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;
using std::size_t;

constexpr unsigned thread_count = 200;
constexpr unsigned rounds = 300;

struct Block {
    size_t bytes;
    size_t seed;
};

/// The blocks that threads hand over: each position holds a block or nullptr.
std::array<std::atomic<Block*>, 512> positions;
std::atomic<bool> spoilt = false;

void end_block(Block* block) {
    if (block == nullptr) return;
    if (!is_filled(block + 1, block->bytes, block->seed)) spoilt = true;
    std::free(block);
}

Block* make_block(std::minstd_rand& random) {
    const size_t bytes = random() % 4 == 0 ? random() % 300'000 : random() % 600;
    auto* block = static_cast<Block*>(std::malloc(sizeof(Block) + bytes));
    if (block == nullptr) return nullptr;
    *block = {bytes, random()};
    fill(block + 1, bytes, block->seed);
    if (random() % 4 != 0) return block;
    const size_t less = bytes / (1 + random() % 4);
    block = static_cast<Block*>(std::realloc(block, sizeof(Block) + less));
    block->bytes = less;
    return block;
}

/// An object whose destructor is among the last that a thread runs.
struct Last {
    std::vector<std::string> texts;
    ~Last() {
        for (int i = 0; i < 20; ++i) texts.push_back(std::string(500, 'x'));
        std::free(std::malloc(200'000));
    }
};
thread_local Last last;

void work(unsigned number) {
    std::minstd_rand random(number + 1);
    std::map<int, std::string> tree;
    for (unsigned round = 0; round < rounds; ++round) {
        end_block(positions[random() % positions.size()].exchange(make_block(random)));
        tree[static_cast<int>(random() % 50)] = std::string(random() % 200, 'y');
        if (round == 0) last.texts.emplace_back(100, 'z');
    }
}

void run_plugin(const char* path) {
    void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        spoilt = true;
        return;
    }
    const auto use = reinterpret_cast<bool (*)(size_t)>(dlsym(plugin, "use_plugin"));
    for (const size_t bytes : {10UL, 100'000UL}) {
        if (use == nullptr || !use(bytes)) spoilt = true;
    }
    dlclose(plugin);
}

/// Forks, and returns whether the child can do everything that its parent can.
bool child_works() {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        std::thread([] { work(7777); }).join();
        work(8888);
        _exit(spoilt ? 1 : 0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int count, char** arguments) {
    expect_interposed();
    if (count != 2) return 2;
    alarm(200);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i) threads.emplace_back(work, i);
    std::thread forks([] {
        for (int i = 0; i < 12; ++i) expect(child_works(), "a child that works");
    });
    for (int i = 0; i < 60; ++i) run_plugin(arguments[1]);
    for (std::thread& thread : threads) thread.join();
    forks.join();
    for (auto& position : positions) end_block(position.exchange(nullptr));
    expect(!spoilt, "intact contents, and a working plug-in");
    return failures == 0 ? 0 : 1;
}
