"""Every unit includes what it names, so that it compiles alone.

Precompiled headers and unity builds hide a missing include: the unit finds the name through a neighbour. This check
reads the text instead: a name of the table below is reached by the unit's own includes, through the project's headers
that they name, or it is a complaint. tests/run.sh --slow also compiles every unit alone (the `alone` preset)."""

import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)

# Headers, any one of which will do, and the names that they define: a pattern over the text without comments and
# string literals.
DEFINES = {
    ("algorithm",): r"std::(sort|stable_sort|min|max|clamp|copy|copy_n|fill|fill_n|find|find_if|any_of|all_of|none_of|"
                    r"transform|reverse|rotate|lower_bound|upper_bound|nth_element|partial_sort|equal|unique|remove_if|"
                    r"max_element|min_element|count_if|is_sorted|swap_ranges|ranges::\w+)\b",
    ("array",): r"std::array\b",
    ("atomic",): r"std::atomic\b",
    ("bit",): r"std::(bit_cast|countr_zero|countl_zero|popcount|bit_width|bit_ceil|has_single_bit)\b",
    ("chrono",): r"std::chrono\b",
    ("cmath",): r"std::(sqrt|exp|log|pow|abs|fabs|ceil|floor|round|lround|isnan|isfinite|isinf|tanh|erf)\(",
    ("condition_variable",): r"std::condition_variable\b",
    ("cstdint", "stdint.h"): r"\bu?int(8|16|32|64)_t\b",
    ("cstring",): r"std::(memcpy|memset|memcmp|memmove|strlen|strcmp|strerror)\b",
    ("deque",): r"std::deque\b",
    ("filesystem",): r"std::filesystem\b",
    ("fstream",): r"std::(ifstream|ofstream|fstream)\b",
    ("functional",): r"std::(function|ref|cref|bind|hash|less|greater|plus|multiplies)\b(?!\w)",
    ("future",): r"std::(future|promise|async)\b",
    ("iostream", "ostream", "istream"): r"std::(cout|cerr|cin)\b",
    ("limits",): r"std::numeric_limits\b",
    ("list",): r"std::list\b",
    ("map",): r"std::(map|multimap)\b",
    ("memory",): r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this)\b",
    ("mutex",): r"std::(mutex|lock_guard|unique_lock|scoped_lock|once_flag|call_once|recursive_mutex)\b",
    ("numbers",): r"std::numbers\b",
    ("numeric",): r"std::(accumulate|iota|partial_sum|inner_product|reduce|exclusive_scan|inclusive_scan|gcd|lcm)\b",
    ("optional",): r"std::(optional|nullopt|nullopt_t)\b",
    ("queue",): r"std::(queue|priority_queue)\b",
    ("random",): r"std::(mt19937|mt19937_64|uniform_int_distribution|uniform_real_distribution|normal_distribution)\b",
    ("set",): r"std::(set|multiset)\b",
    ("span",): r"std::(span|as_bytes)\b",
    ("sstream",): r"std::(stringstream|ostringstream|istringstream)\b",
    ("string",): r"std::(string|to_string|stoi|stod|getline)\b",
    ("string_view", "string"): r"std::string_view\b",
    ("thread", "stop_token"): r"std::(thread|jthread|this_thread)\b",
    ("tuple",): r"std::(tuple|tie|make_tuple|apply)\b",
    ("type_traits",): r"std::(is_same_v|enable_if_t|decay_t|is_integral_v|conditional_t|remove_cvref_t)\b",
    ("unordered_map",): r"std::unordered_map\b",
    ("unordered_set",): r"std::unordered_set\b",
    ("utility",): r"std::(move|pair|exchange|forward|make_pair)\b",
    ("variant",): r"std::(variant|visit|monostate|get_if|holds_alternative)\b",
    ("vector",): r"std::vector\b",
    ("absl/base/thread_annotations.h",): r"\bABSL_(GUARDED_BY|EXCLUSIVE_LOCKS_REQUIRED|LOCKS_EXCLUDED)\b",
    ("absl/container/flat_hash_map.h",): r"absl::flat_hash_map\b",
    ("absl/container/flat_hash_set.h",): r"absl::flat_hash_set\b",
    ("absl/functional/any_invocable.h",): r"absl::AnyInvocable\b",
    ("absl/functional/function_ref.h",): r"absl::FunctionRef\b",
    ("absl/status/status.h", "absl/status/statusor.h"):
        r"absl::(Status|OkStatus|StatusCode|\w+Error)\b",
    ("absl/status/statusor.h",): r"absl::StatusOr\b",
    ("absl/strings/str_cat.h",): r"absl::(StrCat|StrAppend)\b",
    ("absl/strings/str_format.h",): r"absl::(StrFormat|StrAppendFormat|PrintF|FPrintF)\b",
    ("absl/strings/str_join.h",): r"absl::StrJoin\b",
    ("absl/strings/str_split.h",): r"absl::(StrSplit|SkipEmpty|ByChar|MaxSplits)\b",
    ("absl/synchronization/mutex.h",): r"absl::(Mutex|MutexLock|CondVar|ReaderMutexLock)\b",
    ("absl/synchronization/notification.h",): r"absl::Notification\b",
    ("absl/time/time.h", "absl/time/clock.h"):
        r"absl::(Time|Duration|Seconds|Milliseconds|InfiniteFuture|ZeroDuration)\b",
    ("absl/time/clock.h",): r"absl::(Now|SleepFor)\b",
    ("nlohmann/json.hpp", "nlohmann/json_fwd.hpp"): r"\bnlohmann::",
    ("gtest/gtest.h", "gmock/gmock.h"): r"\b(TEST|TEST_F|TEST_P|EXPECT_EQ|EXPECT_TRUE|ASSERT_TRUE|ASSERT_EQ)\(",
    ("gmock/gmock.h",): r"\b(EXPECT_THAT|ASSERT_THAT|MOCK_METHOD)\(",
    ("longview/v1/text.pb.h", "longview/v1/text.grpc.pb.h"):
        r"\bv1::(Classify|Embed|Generate|FillMask|AnswerQuestion)\w*(Request|Response)\b",
    ("longview/v1/models.pb.h", "longview/v1/models.grpc.pb.h"): r"\bv1::(Estimate|ListModels)\w*(Request|Response)\b",
    ("inference/grpc_service.pb.h", "inference/grpc_service.grpc.pb.h"):
        r"\binference::Model\w+(Request|Response)\b",
    ("ATen/core/Tensor.h",): r"\bat::Tensor\b",
}
PATTERNS = {headers: re.compile(pattern) for headers, pattern in DEFINES.items()}


def tracked():
    listing = subprocess.run(["git", "ls-files", "-z", "*.cc", "*.h"], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout
    return [ROOT / name for name in listing.split("\0") if name]


@functools.lru_cache(maxsize=None)
def reached(path):
    """The headers that a file's includes name, through headers of the project."""
    found = set()
    waiting = [path]
    seen = {path}
    while waiting:
        for name in INCLUDE.findall(waiting.pop().read_text(encoding="utf-8")):
            found.add(name)
            header = ROOT / name
            if header not in seen and header.is_file():
                seen.add(header)
                waiting.append(header)
    return found


def missing(path):
    """The headers that a file leans on without naming them, as lists of alternatives."""
    text = NOISE.sub(" ", path.read_text(encoding="utf-8"))
    named = reached(path)
    return [headers for headers, pattern in PATTERNS.items()
            if pattern.search(text) and not named & set(headers)]


def test_every_unit_includes_what_it_names():
    files = tracked()
    assert len(files) > 500
    found = [f"{path.relative_to(ROOT)}: <{headers[0]}>" for path in files for headers in missing(path)]
    assert not found, "\n".join(found)


def test_a_missing_include_is_seen(tmp_path):
    planted = tmp_path / "planted.cc"
    planted.write_text('#include <string>\n\n// std::map\nstd::vector<std::string> a;\nconst char* b = "std::set";\n')
    assert missing(planted) == [("vector",)]
