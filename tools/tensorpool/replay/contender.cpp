#include "replay/contender.hpp"

#include <dlfcn.h>
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

#include "replay/gauges.hpp"
#include "replay/performance.hpp"

namespace tensorpool::command::replay {
namespace {

constexpr int word_count = 6;

/// Whether jemalloc keeps what was freed for ever, as it was told to. Another `malloc`: no.
bool never_decays() noexcept {
    using Mallctl = int (*)(const char*, void*, std::size_t*, void*, std::size_t);
    const auto mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
    if (mallctl == nullptr) return false;
    for (const char* const option : {"opt.dirty_decay_ms", "opt.muzzy_decay_ms"}) {
        ssize_t milliseconds = 0;
        std::size_t bytes = sizeof milliseconds;
        if (mallctl(option, &milliseconds, &bytes, nullptr, 0) != 0 || milliseconds != -1) {
            return false;
        }
    }
    return true;
}

void say_what_it_is(ContenderAnswer& answer) noexcept {
    file_of(dlsym(RTLD_DEFAULT, "malloc"), answer.malloc_file);
    answer.never_decays = never_decays();
}

/// It reads its variables now, and says on stderr which make no sense.
void set_pool_up() noexcept {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.try_allocate(1));
}

}  // namespace

bool is_contender(int count, const char* const* words) noexcept {
    return count == word_count && std::strcmp(words[1], ContenderTask::word) == 0;
}

int contend(int, const char* const* words) noexcept {
    const ContenderTask task = {
        static_cast<Calls>(std::atoi(words[2])),
        static_cast<Touch>(std::atoi(words[3])),
        std::atoi(words[4]),
        std::atoi(words[5]),
    };
    static ContenderAnswer answer = {};
    say_what_it_is(answer);
    PlanView plan;
    if (task.plan < 0) {
        if (task.calls == Calls::pool) set_pool_up();
    } else if (map_plan(task.plan, plan)) {
        perform(task, plan, answer);
    } else {
        std::snprintf(answer.problem, sizeof answer.problem, "it cannot map the plan");
    }
    answer_and_end(task.answer, answer);
}

}  // namespace tensorpool::command::replay
