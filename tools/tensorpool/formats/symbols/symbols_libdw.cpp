// Reads symbols and lines with elfutils' libdw, also from separate debug files found by build id.

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include "formats/symbols/frame_names.hpp"

namespace tensorpool::command::symbols {
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

/// Returns where the function of this address, as the linker knows it, has the call that was
/// inlined; an empty location if the address lies in no inlined call.
CodeLocation call_of_inlined(Dwfl_Module* module, GElf_Addr address) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = dwfl_module_addrdie(module, address, &bias);
    Dwarf_Die* scopes = nullptr;
    const int count = unit == nullptr ? 0 : dwarf_getscopes(unit, address - bias, &scopes);
    CodeLocation location;
    for (int i = 0; i < count; ++i) {
        const int tag = dwarf_tag(&scopes[i]);
        if (tag == DW_TAG_subprogram) break;
        if (tag != DW_TAG_inlined_subroutine) continue;
        Dwarf_Attribute attribute;
        Dwarf_Word line = 0;
        Dwarf_Word file = 0;
        Dwarf_Files* files = nullptr;
        if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &line) != 0 ||
            dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &file) != 0 ||
            dwarf_getsrcfiles(unit, &files, nullptr) != 0) {
            continue;
        }
        const char* const name = dwarf_filesrc(files, file, nullptr, nullptr);
        location.file = name == nullptr ? "" : name;
        location.line = static_cast<int>(line);
    }
    std::free(scopes);
    return location;
}

}  // namespace

struct CodeFile::Symbols {
    std::unique_ptr<Dwfl, EndSession> session;
    Dwfl_Module* module = nullptr;
    GElf_Addr bias = 0;
};

void CodeFile::open_symbols(const std::string& path, int file) {
    auto symbols = std::make_shared<Symbols>();
    symbols->session.reset(dwfl_begin(&callbacks));
    const int own = ::dup(file);  // libdw keeps or closes it
    if (symbols->session != nullptr && own >= 0) {
        symbols->module =
            dwfl_report_offline(symbols->session.get(), path.c_str(), path.c_str(), own);
        dwfl_report_end(symbols->session.get(), nullptr, nullptr);
    }
    if (symbols->module == nullptr && own >= 0) ::close(own);
    if (symbols->module == nullptr ||
        dwfl_module_getelf(symbols->module, &symbols->bias) == nullptr) {
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
    const CodeLocation call = call_of_inlined(symbols_->module, address);
    if (!call.file.empty()) {
        location.file = call.file;
        location.line = call.line;
    } else if (Dwfl_Line* const line = dwfl_module_getsrc(symbols_->module, address)) {
        const char* const file =
            dwfl_lineinfo(line, nullptr, &location.line, nullptr, nullptr, nullptr);
        if (file != nullptr) location.file = file;
    }
    return location;
}

}  // namespace tensorpool::command::symbols
