#include "run/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace tensorpool::command::run {
namespace {

class Environment {
public:
    Environment() {
        for (char** one = environ; *one != nullptr; ++one) variables_.emplace_back(*one);
    }

    void remove(const std::string& variable) {
        std::erase_if(variables_,
                      [&](const std::string& one) { return one.starts_with(variable); });
    }
    void set(const std::string& name, const std::string& value) {
        remove(name + '=');
        variables_.push_back(name + '=' + value);
    }
    /// Sets a variable unless the caller's environment has it.
    void set_by_default(const std::string& name, const std::string& value) {
        if (std::getenv(name.c_str()) == nullptr) set(name, value);
    }
    /// Inserts a value before those that the list holds already.
    void put_first(const std::string& name, const std::string& value) {
        const char* const present = std::getenv(name.c_str());
        const bool is_empty = present == nullptr || *present == '\0';
        set(name, is_empty ? value : value + ':' + present);
    }
    std::vector<std::string> take() { return std::move(variables_); }

private:
    std::vector<std::string> variables_;
};

/// The enabled Python parts, such as "numpy,torch".
std::string python_parts(const std::vector<PlannedPart>& parts) {
    std::string names;
    for (const PlannedPart& one : parts) {
        if (one.part == Part::malloc || one.part == Part::profile || !one.is_put()) continue;
        names += (names.empty() ? "" : ",") + std::string(name_of(one.part));
    }
    return names;
}

void put_parts(Environment& environment, const std::vector<PlannedPart>& parts,
               const PartPaths& paths) {
    if (is_put(parts, Part::malloc)) environment.put_first("LD_PRELOAD", paths.interposer);
    if (is_put(parts, Part::profile)) environment.set_by_default("TENSORPOOL_PROFILE", "on");
    const std::string names = python_parts(parts);
    if (names.empty()) return;
    environment.put_first("PYTHONPATH", paths.site_folder);
    environment.set("TENSORPOOL_PYTHON_PARTS", names);
    environment.set("TENSORPOOL_PYTHON_PACKAGE", paths.package);
}

}  // namespace

std::vector<std::string> environment_for(const Arguments& arguments,
                                         const std::vector<PlannedPart>& parts,
                                         const PartPaths& paths, const std::string& observer) {
    Environment environment;
    put_parts(environment, parts, paths);
    environment.set("TENSORPOOL_OBSERVER", observer);
    environment.remove("TENSORPOOL_TRACE=observer");  // of an enclosing `tensorpool run`
    environment.set_by_default("TENSORPOOL_RETAIN_BACKGROUND", "auto");
    const auto set_given = [&](const char* name, const std::string& value) {
        if (!value.empty()) environment.set(name, value);
    };
    set_given("TENSORPOOL_MAX_CAPACITY", arguments.limit);
    // The program may start others in another folder.
    if (!arguments.budget.empty()) {
        environment.set("TENSORPOOL_BUDGETS", std::filesystem::absolute(arguments.budget));
    }
    set_given("TENSORPOOL_INTERPOSE_MIN", arguments.interpose_min);
    set_given("TENSORPOOL_TRACE", arguments.trace.empty() ? "" : "observer");
    set_given("TENSORPOOL_TRACE_STACKS", arguments.stacks);
    return environment.take();
}

}  // namespace tensorpool::command::run
