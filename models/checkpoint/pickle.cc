#include "models/checkpoint/pickle.h"

#include <functional>
#include <optional>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/checkpoint/pickle_values.h"

namespace longview::models {
namespace {

using Kind = PickleValue::Kind;

std::string Shown(std::string_view text) { return std::string(text.substr(0, 64)); }

class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes) : bytes_(bytes) { values_.resize(1); }

  // False with a status once something is wrong.
  bool Run() {
    while (!done_) {
      const std::string_view opcode = Take(1);
      if (!status_.ok() || !Step(opcode[0])) return false;
      if (values_.size() > kMaxPickleValues) {
        return Broken(absl::StrCat("more than ", kMaxPickleValues, " values"));
      }
    }
    return status_.ok();
  }

  const absl::Status& status() const { return status_; }
  absl::StatusOr<Pickled> Finish(PickleKind kind) {
    Pickled out;
    const PickleValue& root = values_[stack_.back()];
    const Kind wanted = kind == PickleKind::kTexts    ? Kind::kSequence
                        : kind == PickleKind::kNumber ? Kind::kInt
                                                      : Kind::kDict;
    bool fits = root.kind == wanted;
    out.number = root.number;
    for (size_t i = 0; fits && i < root.parts.size(); ++i) {
      if (kind == PickleKind::kTexts) {
        fits = At(root.parts[i]).kind == Kind::kText;
        out.keys.emplace_back(At(root.parts[i]).text);
      } else if (i % 2 == 1) {
        const PickleValue &key = At(root.parts[i - 1]), &value = At(root.parts[i]);
        if (key.kind == Kind::kText && key.text == "little_endian")
          out.little_endian = value.number != 0;
        if (kind == PickleKind::kSystemFacts) continue;
        if (key.kind != Kind::kText || value.kind != Kind::kTensor) {
          return absl::FailedPreconditionError(
              absl::StrCat("entry \"", Shown(key.text), "\" is no tensor with a name"));
        }
        out.tensors.emplace_back(key.text, tensors_[value.number]);
      }
    }
    if (!fits) {
      return absl::FailedPreconditionError("the pickle holds something else than a state dict");
    }
    out.storages = std::move(by_key_);
    out.bytes = at_;
    return out;
  }

 private:
  const PickleValue& At(PickleId id) const { return values_[id]; }

  bool Refuse(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool Broken(const std::string& what) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("not a readable pickle: ", what, " near its byte ", at_)));
  }

  std::string_view Take(uint64_t count) {
    if (count > bytes_.size() - at_) {
      Broken("the end of the data");
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::string_view TakeLine() {
    const size_t end = bytes_.find('\n', at_);
    const std::string_view line = Take(end == bytes_.npos ? bytes_.size() + 1 : end - at_);
    if (status_.ok()) ++at_;
    return line;
  }
  uint64_t TakeNumber(int size) {
    const std::string_view bytes = Take(size);
    uint64_t value = 0;
    for (int i = static_cast<int>(bytes.size()) - 1; i >= 0; --i) {
      value = value << 8 | static_cast<uint8_t>(bytes[i]);
    }
    return value;
  }

  bool Push(PickleValue value) {
    stack_.push_back(static_cast<PickleId>(values_.size()));
    values_.push_back(std::move(value));
    return status_.ok();
  }
  bool PushInt(int64_t number, Kind kind = Kind::kInt) {
    return Push({.kind = kind, .number = number});
  }
  bool PushText(uint64_t length) { return Push({.kind = Kind::kText, .text = Take(length)}); }
  bool PushParts(Kind kind, std::vector<PickleId> parts) {
    if (kind == Kind::kDict && parts.size() % 2 != 0) return Broken("a key without a value");
    return Push({.kind = kind, .parts = std::move(parts)});
  }
  // Little-endian, two's complement; those beyond 64 bits are of no use to a state dict.
  bool PushLong(size_t size) {
    if (size > 8) return Broken("an integer of more than 64 bits");
    const uint64_t bits = TakeNumber(static_cast<int>(size));
    const int unused = 64 - 8 * static_cast<int>(size);
    return PushInt(size == 0 ? 0 : static_cast<int64_t>(bits << unused) >> unused);
  }

  std::optional<PickleId> Pop() {
    if (stack_.empty()) {
      Broken("an empty stack");
      return std::nullopt;
    }
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  // The last `count`, in order.
  std::optional<std::vector<PickleId>> PopSome(size_t count) {
    if (count > stack_.size()) {
      Broken("an empty stack");
      return std::nullopt;
    }
    std::vector<PickleId> some(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return some;
  }
  std::optional<std::vector<PickleId>> PopToMark() {
    size_t count = 0;
    while (count < stack_.size() && At(stack_[stack_.size() - 1 - count]).kind != Kind::kMark)
      ++count;
    auto some = PopSome(count);
    if (some) Pop();
    if (!status_.ok()) return std::nullopt;
    return some;
  }

  bool Extend(const std::optional<std::vector<PickleId>>& parts, Kind kind) {
    if (!parts) return false;
    if (stack_.empty() || At(stack_.back()).kind != kind) return Broken("parts of no container");
    if (kind == Kind::kDict && parts->size() % 2 != 0) return Broken("a key without a value");
    std::vector<PickleId>& into = values_[stack_.back()].parts;
    into.insert(into.end(), parts->begin(), parts->end());
    return true;
  }
  bool PushTuple(std::optional<std::vector<PickleId>> parts) {
    return parts && PushParts(Kind::kSequence, *std::move(parts));
  }

  bool Memoize(uint64_t place) {
    if (stack_.empty()) return Broken("nothing to remember");
    memo_[place] = stack_.back();
    return status_.ok();
  }
  bool Recall(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) return Broken(absl::StrCat("nothing remembered as ", place));
    stack_.push_back(found->second);
    return stack_.size() <= kMaxPickleValues || Broken("a stack too deep");
  }

  bool PushGlobal(std::string_view module, std::string_view name) {
    if (!status_.ok()) return false;
    std::optional<PickleValue> value = PickleGlobal(module, name);
    if (value) return Push(*std::move(value));
    return Refuse(absl::FailedPreconditionError(
        absl::StrCat("the pickle asks for ", Shown(module), ".", Shown(name),
                     ", which a state dict does not need")));
  }
  bool PushStackGlobal() {
    const auto names = PopSome(2);
    if (!names) return false;
    const PickleValue &module = At((*names)[0]), &name = At((*names)[1]);
    if (module.kind != Kind::kText || name.kind != Kind::kText) return Broken("a name of no text");
    return PushGlobal(module.text, name.text);
  }

  static bool IsCount(const PickleValue& value) {
    return value.kind == Kind::kInt && value.number >= 0;
  }

  // ("storage", type, key, place, elements[, view]), a view being (key, first, elements) or None.
  bool PushStorage() {
    const auto id = Pop();
    if (!id) return false;
    const std::vector<PickleId>& parts = At(*id).parts;
    const auto is = [&](size_t i, Kind kind) { return At(parts[i]).kind == kind; };
    if (At(*id).kind != Kind::kSequence || (parts.size() != 5 && parts.size() != 6) ||
        At(parts[0]).text != "storage" || !is(1, Kind::kStorageType) || !is(2, Kind::kText) ||
        At(parts[2]).text.size() > kMaxStorageKey || !IsCount(At(parts[4]))) {
      return Broken("a reference to no storage");
    }
    PickledStorage storage{std::string(At(parts[2]).text), At(parts[1]).dtype,
                           static_cast<uint64_t>(At(parts[4]).number)};
    const auto known = by_key_.emplace(storage.key, storage).first;
    if (known->second.dtype != storage.dtype || known->second.elements != storage.elements) {
      return Broken(absl::StrCat("storage \"", Shown(storage.key), "\" of two kinds"));
    }
    if (parts.size() == 6 && !is(5, Kind::kNone)) {
      const std::vector<PickleId>& view = At(parts[5]).parts;
      if (view.size() != 3 || !IsCount(At(view[1])) || !IsCount(At(view[2]))) {
        return Broken("a view of no storage");
      }
      storage.first = static_cast<uint64_t>(At(view[1]).number);
      const auto count = static_cast<uint64_t>(At(view[2]).number);
      if (count > storage.elements || storage.first > storage.elements - count) {
        return Broken("a view outside its storage");
      }
    }
    storages_.push_back(std::move(storage));
    return PushInt(static_cast<int64_t>(storages_.size()) - 1, Kind::kStorage);
  }

  bool ReadSides(PickleId id, std::vector<int64_t>& out) {
    for (const PickleId part : At(id).parts) {
      if (At(part).kind != Kind::kInt) return Broken("a side that is no number");
      out.push_back(At(part).number);
    }
    return At(id).kind == Kind::kSequence || Broken("sides that are no tuple");
  }

  // (storage, offset, shape, strides, requires_grad, backward_hooks, ...)
  bool PushTensor(const std::vector<PickleId>& arguments) {
    if (arguments.size() < 4 || At(arguments[0]).kind != Kind::kStorage ||
        !IsCount(At(arguments[1]))) {
      return Broken("a tensor without a storage");
    }
    PickledTensor tensor{storages_[At(arguments[0]).number],
                         static_cast<uint64_t>(At(arguments[1]).number)};
    if (!ReadSides(arguments[2], tensor.shape) || !ReadSides(arguments[3], tensor.strides)) {
      return false;
    }
    const uint64_t first = tensor.storage.first;
    if (__builtin_add_overflow(tensor.offset, first, &tensor.offset)) return Broken("an offset");
    absl::StatusOr<PickledTensor> checked = CheckedTensor(std::move(tensor));
    if (!checked.ok()) return Refuse(checked.status());
    tensors_.push_back(*std::move(checked));
    if (tensors_.size() > kMaxPickledTensors) return Broken("more than 200,000 tensors");
    return PushInt(static_cast<int64_t>(tensors_.size()) - 1, Kind::kTensor);
  }

  bool Reduce() {
    const auto both = PopSome(2);
    if (!both) return false;
    const PickleValue &callee = At((*both)[0]), &arguments = At((*both)[1]);
    if (arguments.kind != Kind::kSequence) return Broken("arguments that are no tuple");
    switch (callee.kind) {
      case Kind::kOrderedDict:
        if (!arguments.parts.empty()) return Broken("a dictionary with arguments");
        return PushParts(Kind::kDict, {});
      case Kind::kRebuildTensor:
        return PushTensor(std::vector<PickleId>(arguments.parts));
      case Kind::kRebuildParameter:
        if (arguments.parts.empty() || At(arguments.parts[0]).kind != Kind::kTensor) {
          return Broken("a parameter that is no tensor");
        }
        stack_.push_back(arguments.parts[0]);
        return true;
      default:
        return Broken("a call of what is no function");
    }
  }

  bool Step(char opcode);

  std::string_view bytes_;
  size_t at_ = 0;
  bool done_ = false;
  absl::Status status_;
  std::vector<PickleValue> values_;  // The first is None.
  std::vector<PickleId> stack_;
  std::unordered_map<uint64_t, PickleId> memo_;
  std::vector<PickledStorage> storages_;
  std::vector<PickledTensor> tensors_;
  std::map<std::string, PickledStorage, std::less<>> by_key_;
};

// The opcodes of Python's pickletools that its pickler writes for such values.
bool PickleMachine::Step(char opcode) {
  switch (static_cast<uint8_t>(opcode)) {
    case 0x80:  // PROTO
      return Take(1).size() == 1;
    case 0x95:  // FRAME
      return Take(8).size() == 8;
    case '.':  // STOP
      done_ = true;
      return !stack_.empty() || Broken("an empty stack");
    case '(':
      return PushInt(0, Kind::kMark);
    case '0':
      return Pop().has_value();
    case '1':
      return PopToMark().has_value();
    case 'N':
      stack_.push_back(0);
      return true;
    case 0x88:
      return PushInt(1, Kind::kBool);
    case 0x89:
      return PushInt(0, Kind::kBool);
    case 'J':  // BININT
      return PushLong(4);
    case 'K':
      return PushInt(static_cast<int64_t>(TakeNumber(1)));
    case 'M':
      return PushInt(static_cast<int64_t>(TakeNumber(2)));
    case 0x8a:  // LONG1
      return PushLong(TakeNumber(1));
    case 'G':  // BINFLOAT
      Take(8);
      return PushInt(0, Kind::kFloat);
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
      return PushText(TakeNumber(4));
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':
    case 'C':
      return PushText(TakeNumber(1));
    case 0x8d:  // BINUNICODE8
      return PushText(TakeNumber(8));
    case '}':
      return PushParts(Kind::kDict, {});
    case ']':
    case ')':
      return PushParts(Kind::kSequence, {});
    case 't':
    case 'l':
      return PushTuple(PopToMark());
    case 0x85:  // TUPLE1 to TUPLE3
    case 0x86:
    case 0x87:
      return PushTuple(PopSome(static_cast<uint8_t>(opcode) - 0x84));
    case 'd': {
      auto parts = PopToMark();
      return parts && PushParts(Kind::kDict, *std::move(parts));
    }
    case 'a':
      return Extend(PopSome(1), Kind::kSequence);
    case 'e':
      return Extend(PopToMark(), Kind::kSequence);
    case 's':
      return Extend(PopSome(2), Kind::kDict);
    case 'u':
      return Extend(PopToMark(), Kind::kDict);
    case 'q':
      return Memoize(TakeNumber(1));
    case 'r':
      return Memoize(TakeNumber(4));
    case 0x94:  // MEMOIZE
      return Memoize(memo_.size());
    case 'h':
      return Recall(TakeNumber(1));
    case 'j':
      return Recall(TakeNumber(4));
    case 'c': {  // GLOBAL
      const std::string_view module = TakeLine();
      return PushGlobal(module, TakeLine());
    }
    case 0x93:
      return PushStackGlobal();
    case 'R':
      return Reduce();
    case 'b':  // BUILD: attributes of a dictionary, such as _metadata.
      if (!Pop()) return false;
      return (!stack_.empty() && At(stack_.back()).kind == Kind::kDict) ||
             Broken("attributes of no dictionary");
    case 'Q':  // BINPERSID
      return PushStorage();
    default:
      return Refuse(absl::FailedPreconditionError(
          absl::StrCat("the pickle has opcode ", static_cast<int>(static_cast<uint8_t>(opcode)),
                       " at its byte ", at_ - 1, ", which a state dict does not need")));
  }
}

}  // namespace

absl::StatusOr<Pickled> ReadPickle(std::string_view bytes, PickleKind kind) {
  PickleMachine machine(bytes);
  if (!machine.Run()) return machine.status();
  return machine.Finish(kind);
}

}  // namespace longview::models
