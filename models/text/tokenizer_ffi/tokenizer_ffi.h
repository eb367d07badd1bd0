/* The C interface of the Rust tokenizer library; models/text/tokenizer.h is its only user.
 *
 * Strings are pointer and length, UTF-8, not NUL-terminated; NUL bytes are legal text. Results
 * belong to this library until freed with the matching function; every *_free takes NULL.
 * A tokenizer handle is immutable and may be used from many threads; an encoding or string
 * belongs to one. A function that can fail returns NULL and fills `error`; a Rust panic is one
 * of these failures and leaves the handle usable. */
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

typedef struct LvtTokenizer LvtTokenizer;
typedef struct LvtEncoding LvtEncoding;
typedef struct LvtString LvtString;
typedef struct LvtSharedText LvtSharedText;

typedef struct {
  const char* data;
  size_t size;
} LvtText;

enum { kLvtOk = 0, kLvtBadInput = 1, kLvtPanic = 2, kLvtStopped = 3 };

/* The caller provides data and capacity; size and code are filled on failure. */
typedef struct {
  char* data;
  size_t capacity;
  size_t size;
  int32_t code;
} LvtError;

typedef struct {
  const void* stop;           /* std::atomic<bool> or NULL: ends the work early once it is set. */
  const LvtSharedText* first; /* NULL, or where the first text's tokens are kept for other calls. */
  uint32_t piece_bytes;       /* Texts of more than four times that are tokenised in such pieces. */
  uint32_t most_tokens;  /* Longer texts are counted, not kept; 0 = none. Not with max_length. */
  uint32_t max_length;   /* Tokens with specials; 0 = whatever comes. */
  uint32_t stride;       /* Tokens that neighbouring windows share. */
  uint32_t keep_first;   /* With cut_left: so many of the first text's tokens stay in front. */
  uint8_t strategy;      /* 0 longest first, 1 only first, 2 only second. */
  uint8_t cut_left;      /* 1 = keep the end of the text. */
  uint8_t add_special;   /* Wrap into the template. */
  uint8_t match_special; /* Special tokens written in the text become their ids. */
  uint8_t byte_offsets;  /* Offsets in bytes instead of code points. */
  uint8_t windows;       /* Keep what truncation cut off as further windows. */
  uint8_t lower_case;    /* Texts are lower-cased before all else; offsets are in what came. */
} LvtEncodeOptions;

/* Arrays of `length` elements that live as long as the encoding; offsets has 2 * length. */
typedef struct {
  size_t length;
  const uint32_t* ids;
  const uint32_t* type_ids;
  const uint32_t* offsets;
  const int32_t* words;    /* -1 = none. */
  const int8_t* sequences; /* 0, 1; -1 = added by the template. */
  const uint8_t* special;  /* 1 = added by the template. */
} LvtWindow;

/* `json` is a complete tokenizer.json; its truncation and padding are ignored. */
LvtTokenizer* lvt_tokenizer_from_json(LvtText json, LvtError* error);
void lvt_tokenizer_free(LvtTokenizer* tokenizer);

/* A first text of many calls, which is tokenised once; of more than four times piece_bytes, in each
 * call. Empty when made; from any thread. What is kept is all that truncation may leave. */
LvtSharedText* lvt_shared_text(void);
void lvt_shared_text_free(LvtSharedText* text);
size_t lvt_shared_text_reads(const LvtSharedText* text); /* How often it was tokenised. */

/* `b` may be NULL. Window 0 is the answer; more follow only with options->windows. */
LvtEncoding* lvt_encode(const LvtTokenizer* tokenizer, LvtText a, const LvtText* b,
                        const LvtEncodeOptions* options, LvtError* error);
void lvt_encoding_free(LvtEncoding* encoding);
size_t lvt_encoding_tokens_cut(const LvtEncoding* encoding);
size_t lvt_encoding_tokens(const LvtEncoding* encoding);   /* Of the texts, with template. */
uint8_t lvt_encoding_counted(const LvtEncoding* encoding); /* 0 = there are more than that. */
size_t lvt_encoding_windows(const LvtEncoding* encoding);
LvtWindow lvt_encoding_window(const LvtEncoding* encoding, size_t index);

/* Ids that the vocabulary lacks are skipped. */
LvtString* lvt_decode(const LvtTokenizer* tokenizer, const uint32_t* ids, size_t count,
                      uint8_t skip_special, LvtError* error);
LvtString* lvt_id_to_token(const LvtTokenizer* tokenizer, uint32_t id); /* NULL = no such id. */
int64_t lvt_token_to_id(const LvtTokenizer* tokenizer, LvtText token);  /* -1 = no such token. */
size_t lvt_vocab_size(const LvtTokenizer* tokenizer);
int64_t lvt_max_id(const LvtTokenizer* tokenizer); /* -1 = empty. */

LvtText lvt_string_text(const LvtString* string);
void lvt_string_free(LvtString* string);

}  // extern "C"
