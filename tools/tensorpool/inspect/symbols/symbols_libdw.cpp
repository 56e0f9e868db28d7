// Reads symbols and lines with elfutils' libdw, also from separate debug files found by build id.

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdlib>

#include "inspect/symbols/code_file.hpp"

namespace tensorpool::command::inspect {
namespace {

// dwfl_standard_find_debuginfo is not used, because it may contact a server.
const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                  .find_debuginfo = dwfl_build_id_find_debuginfo,
                                  .section_address = dwfl_offline_section_address,
                                  .debuginfo_path = nullptr};

struct EndSession {
    void operator()(Dwfl* session) const noexcept { dwfl_end(session); }
};

// Longer names are templates, too long to read.
constexpr std::size_t max_name_bytes = 4096;

std::string demangled(const char* name) {
    const std::string_view mangled = name;
    if (mangled.size() > max_name_bytes) return std::string(mangled.substr(0, max_name_bytes));
    int status = 0;
    char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = status == 0 && text != nullptr ? text : name;
    std::free(text);
    return result;
}

}  // namespace

struct CodeFile::Symbols {
    std::unique_ptr<Dwfl, EndSession> session;
    Dwfl_Module* module = nullptr;
    GElf_Addr bias = 0;
};

CodeFile::CodeFile(const std::string& path) {
    open(path);
}
CodeFile::CodeFile(CodeFile&&) noexcept = default;
CodeFile& CodeFile::operator=(CodeFile&&) noexcept = default;
CodeFile::~CodeFile() = default;

void CodeFile::open_symbols(const std::string& path, int file) {
    auto symbols = std::make_unique<Symbols>();
    symbols->session.reset(dwfl_begin(&callbacks));
    const int own = ::dup(file);  // libdw keeps or closes it
    if (symbols->session != nullptr && own >= 0) {
        symbols->module =
            dwfl_report_offline(symbols->session.get(), path.c_str(), path.c_str(), own);
        dwfl_report_end(symbols->session.get(), nullptr, nullptr);
    }
    if (symbols->module == nullptr) {
        if (own >= 0) ::close(own);
        problem_ = "has no symbols that libdw reads";
        return;
    }
    if (dwfl_module_getelf(symbols->module, &symbols->bias) == nullptr) {
        problem_ = "has no symbols that libdw reads";
        return;
    }
    symbols_ = std::move(symbols);
}

CodeLocation CodeFile::find(std::uint64_t offset) const {
    if (symbols_ == nullptr) return {};
    const GElf_Addr address = symbols_->bias + offset;
    CodeLocation location;
    if (const char* const name = dwfl_module_addrname(symbols_->module, address)) {
        location.function = demangled(name);
    }
    if (Dwfl_Line* const line = dwfl_module_getsrc(symbols_->module, address)) {
        const char* const file =
            dwfl_lineinfo(line, nullptr, &location.line, nullptr, nullptr, nullptr);
        if (file != nullptr) location.file = file;
    }
    return location;
}

}  // namespace tensorpool::command::inspect
