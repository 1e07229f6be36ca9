// SPDX-License-Identifier: Apache-2.0
// toml++ behind C: bounds first, then parsing, then a flat list in document order. No exception
// leaves this file.
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// The parser's own promises break on some texts ("[" and a control character): an exception, never
// the program's end.
[[noreturn]] static void toml_promise_broken() { throw std::logic_error("not readable as TOML"); }
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : toml_promise_broken())
#include <toml++/toml.h>

extern "C" {
#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
}
#include "harness/toml.h"

namespace {

constexpr int most_depth = 32;
constexpr size_t most_key_bytes = 128;

struct refusal { // a mistake of the text: thrown by the walk, caught below
    toml::source_position at;
    std::string sentence;
};

// Walks over the text as the grammar sees it: what is string or comment, what is not. Enough to
// bound nesting and key length before a recursive parser sees them.
class scanner {
  public:
    scanner(const char *text, size_t len) : s(text, len) {}

    // "" or what is wrong; line and col say where.
    const char *check() {
        if (s.substr(0, 3) == "\xef\xbb\xbf") i = 3; // a byte order mark
        while (i < s.size()) {
            char c = s[i];
            if (c == '#') {
                skip_comment();
            } else if (c == '"' || c == '\'') {
                if (!may_begin_string()) return "a quote in the midst of a word";
                skip_string(c);
            } else {
                if (const char *wrong = step(c)) return wrong;
                advance();
            }
        }
        return "";
    }
    int line = 1, col = 1;

  private:
    std::string_view s;
    size_t i = 0;
    int depth = 0, dots = 0;

    void advance() {
        if (s[i] == '\n') {
            line++;
            col = 1;
        } else if ((static_cast<unsigned char>(s[i]) & 0xc0) != 0x80) {
            col++;
        }
        i++;
    }
    // Anywhere else the parser would read on as if there were no string: 0"text".
    bool may_begin_string() const {
        return i == 0 || std::string_view(" \t\r\n=,[{.\xbf").find(s[i - 1]) != s.npos;
    }
    void skip_comment() {
        while (i < s.size() && s[i] != '\n') advance();
    }
    void skip_string(char quote) {
        const char triple[] = {quote, quote, quote, 0};
        bool many = s.substr(i, 3) == triple;
        for (int k = 0; k < (many ? 3 : 1); k++) advance();
        while (i < s.size()) {
            if (many ? s.substr(i, 3) == triple : s[i] == quote || s[i] == '\n') {
                for (int k = 0; k < (many ? 3 : 1) && i < s.size(); k++) advance();
                // A triple's text may itself end in one or two quotes.
                for (int k = 0; many && k < 2 && i < s.size() && s[i] == quote; k++) advance();
                return;
            }
            if (quote == '"' && s[i] == '\\' && i + 1 < s.size()) advance();
            advance();
        }
    }
    const char *step(char c) {
        // No grammar has these here, and the parser's tables of letters run into undefined
        // behaviour.
        if (static_cast<unsigned char>(c) >= 0x80)
            return "a character outside ASCII that is in no string";
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') ||
            c == 0x7f)
            return "a control character";
        if (c == '.') {
            if (++dots >= TOML_MOST_KEYS) return "a key of more than 8 parts";
        } else if (c == '[' || c == '{') {
            dots = 0;
            if (++depth > most_depth) return "brackets nested deeper than 32";
        } else if (c == ']' || c == '}') {
            dots = 0;
            if (depth) depth--;
        } else if (c == '=' || c == ',' || c == '\n') {
            dots = 0;
        }
        return nullptr;
    }
};

// A part of a path: bare keys as they are, others quoted, so that a dot inside is no separator.
std::string part_of(std::string_view key) {
    bool bare = !key.empty();
    for (char c : key)
        bare = bare && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-');
    if (bare) return std::string(key);
    std::string out = "\"";
    for (char c : key) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return out + "\"";
}

class walker {
  public:
    walker(arena *a, std::string_view document, std::vector<toml_entry> &list)
        : memory(a), source(document), entries(list) {}

    void table(const toml::table &t, const std::string &path) {
        std::vector<std::pair<const toml::key *, const toml::node *>> keys;
        for (auto &&[k, v] : t) keys.push_back({&k, &v});
        std::stable_sort(keys.begin(), keys.end(), [](auto &a, auto &b) {
            auto x = a.first->source().begin, y = b.first->source().begin;
            return x.line != y.line ? x.line < y.line : x.column < y.column;
        });
        for (auto &[k, v] : keys) {
            if (k->str().size() > most_key_bytes)
                throw refusal{k->source().begin, "a key longer than 128 bytes"};
            std::string part = part_of(k->str());
            value(*v, path.empty() ? part : path + "." + part, k->source().begin);
        }
    }

  private:
    arena *memory;
    std::string_view source;
    std::vector<toml_entry> &entries;

    char *copy(const std::string &s) { return arena_textn(memory, s.data(), s.size()); }

    toml_entry &add(toml_kind kind, const std::string &path, const std::string &text,
                    toml::source_position at, toml::source_position key) {
        toml_entry e = {};
        e.path = copy(path);
        e.kind = kind;
        e.text = copy(text);
        e.line = static_cast<int>(at.line);
        e.col = static_cast<int>(at.column);
        e.key_line = static_cast<int>(key.line);
        e.key_col = static_cast<int>(key.column);
        entries.push_back(e);
        return entries.back();
    }

    static bool scalar(const toml::node &n) { return n.is_value(); }

    // How many decimals were written says how exact a figure is: 6.0 stays "6.0".
    std::string written(const toml::node &n) const {
        auto begin = n.source().begin, end = n.source().end;
        if (begin.line != end.line || end.column <= begin.column) return "";
        size_t at = 0;
        for (unsigned line = 1; line < begin.line; line++) {
            at = source.find('\n', at);
            if (at == std::string_view::npos) return "";
            at++;
        }
        std::string out;
        for (unsigned col = 1; at < source.size() && source[at] != '\n'; at++) {
            bool starts = (static_cast<unsigned char>(source[at]) & 0xc0) != 0x80;
            if (starts && col++ >= end.column) break;
            if (col > begin.column && source[at] != '_') out += source[at];
        }
        return out;
    }

    std::string text_of(const toml::node &n) const {
        if (auto s = n.as_string()) {
            // Texts reach terminals and C strings; only line ends and tabs are harmless there.
            for (char c : s->get())
                if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
                    throw refusal{n.source().begin, "a string with a control character"};
            return s->get();
        }
        if (auto i = n.as_integer()) return std::to_string(i->get());
        if (auto b = n.as_boolean()) return b->get() ? "true" : "false";
        if (auto d = n.as_floating_point()) {
            char buf[40];
            if (d->get() != d->get()) return "nan";
            if (d->get() - d->get() != 0) return d->get() > 0 ? "inf" : "-inf";
            std::string raw = written(n);
            double v;
            return parse_f64(raw.c_str(), &v) && v == d->get()
                       ? raw
                       : format_exact(buf, sizeof buf, d->get());
        }
        std::ostringstream out;
        out.imbue(std::locale::classic());
        if (auto v = n.as_date()) out << v->get();
        if (auto v = n.as_time()) out << v->get();
        if (auto v = n.as_date_time()) out << v->get();
        return out.str();
    }

    static toml_kind kind_of(const toml::node &n) {
        return n.is_string()           ? TOML_STRING
               : n.is_integer()        ? TOML_INT
               : n.is_floating_point() ? TOML_REAL
               : n.is_boolean()        ? TOML_BOOL
                                       : TOML_OTHER;
    }

    void value(const toml::node &n, const std::string &path, toml::source_position key) {
        if (auto t = n.as_table()) {
            add(TOML_TABLE, path, "", n.source().begin, key);
            table(*t, path);
        } else if (auto a = n.as_array()) {
            array(*a, path, key);
        } else {
            add(kind_of(n), path, text_of(n), n.source().begin, key);
        }
    }

    void array(const toml::array &a, const std::string &path, toml::source_position key) {
        bool scalars = true, tables = !a.empty();
        for (auto &&n : a) {
            scalars = scalars && scalar(n);
            tables = tables && n.is_table();
        }
        if (tables) {
            size_t i = 0;
            for (auto &&n : a) {
                std::string item = path + "[" + std::to_string(i++) + "]";
                add(TOML_TABLE, item, "", n.source().begin, n.source().begin);
                table(*n.as_table(), item);
            }
        } else if (scalars) {
            scalar_array(a, path, key);
        } else {
            add(TOML_OTHER, path, "an array of arrays or tables", a.source().begin, key);
        }
    }

    void scalar_array(const toml::array &a, const std::string &path, toml::source_position key) {
        auto **items =
            static_cast<const char **>(arena_alloc(memory, (a.size() + 1) * sizeof(char *)));
        auto *lines = static_cast<int *>(arena_alloc(memory, (a.size() + 1) * sizeof(int)));
        auto *cols = static_cast<int *>(arena_alloc(memory, (a.size() + 1) * sizeof(int)));
        std::string all = "[";
        size_t i = 0;
        for (auto &&n : a) {
            std::string text = text_of(n);
            all += (i ? ", " : "") + text;
            items[i] = copy(text);
            lines[i] = static_cast<int>(n.source().begin.line);
            cols[i++] = static_cast<int>(n.source().begin.column);
        }
        toml_entry &e = add(TOML_ARRAY, path, all + "]", a.source().begin, key);
        e.items = items;
        e.n_items = i;
        e.item_line = lines;
        e.item_col = cols;
    }
};

int refuse(struct err *err, const char *name, int64_t line, int64_t col, std::string sentence) {
    for (char &c : sentence)
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return err_set(err, ERR_INPUT, "%s:%lld:%lld: %s", name, static_cast<long long>(line),
                   static_cast<long long>(col), sentence.c_str());
}

int bounds(const char *text, size_t len, const char *name, struct err *err) {
    if (len > TOML_MOST_BYTES)
        return err_set(err, ERR_INPUT, "%s:1:1: %zu bytes; at most %d are read", name, len,
                       TOML_MOST_BYTES);
    size_t good = 0;
    int64_t line = 1, col = 1;
    for (size_t n; good < len; good += n) { // a line at a time, to know where
        const void *end = memchr(text + good, '\n', len - good);
        n = end ? static_cast<size_t>(static_cast<const char *>(end) - text) + 1 - good
                : len - good;
        if (!utf8_valid(text + good, n)) return refuse(err, name, line, col, "not valid UTF-8");
        line++;
    }
    scanner scan(text, len);
    const char *wrong = scan.check();
    return *wrong ? refuse(err, name, scan.line, scan.col, wrong) : 0;
}

// The parser's own error may not throw, yet allocates: it ends in std::terminate then.
void terminated() {
    try {
        throw;
    } catch (const std::bad_alloc &) {
        out_of_memory();
    } catch (...) {
        std::abort();
    }
}

struct terminating {
    std::terminate_handler before = std::set_terminate(terminated);
    ~terminating() { std::set_terminate(before); }
};

} // namespace

extern "C" int toml_read(const char *text, size_t len, const char *name, struct arena *arena,
                         struct toml_entry **list, size_t *n, struct err *err) {
    *list = nullptr;
    *n = 0;
    const terminating handler;
    try {
        if (int code = bounds(text, len, name, err)) return code;
        toml::table root = toml::parse(std::string_view(text, len), std::string_view());
        std::vector<toml_entry> entries;
        walker(arena, std::string_view(text, len), entries).table(root, "");
        *list = static_cast<toml_entry *>(
            arena_alloc(arena, (entries.size() + 1) * sizeof(toml_entry)));
        std::copy(entries.begin(), entries.end(), *list);
        *n = entries.size();
        return 0;
    } catch (const refusal &r) {
        return refuse(err, name, r.at.line, r.at.column, r.sentence);
    } catch (const toml::parse_error &e) {
        auto at = e.source().begin;
        return refuse(err, name, at.line ? at.line : 1, at.column ? at.column : 1,
                      std::string(e.description()));
    } catch (const std::bad_alloc &) {
        return err_set(err, ERR_SYSTEM, "%s: out of memory while reading", name);
    } catch (const std::exception &e) {
        return refuse(err, name, 1, 1, e.what());
    } catch (...) {
        return refuse(err, name, 1, 1, "not readable as TOML");
    }
}
