//! Where a text may be cut so that its parts, tokenised one by one, give the tokens of the whole.
//!
//! A cut is safe if no stage of the tokenizer looks across it: the characters beside it are ASCII,
//! the first stays what it is in every normalizer, the second begins a new word in some
//! pre-tokenizer, and no added token reaches over there or minds what is beyond. Stages that are
//! not known to be local leave a tokenizer without a plan.

use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{
    Model, ModelWrapper, NormalizedString, Normalizer, NormalizerWrapper, SplitDelimiterBehavior,
    Tokenizer,
};

/// Expressions of `Split` that end a match between a letter or digit and white space, look at
/// nothing before a match, and ask for what follows only behind white space.
const KNOWN_EXPRESSIONS: [&str; 6] = [
    r"\W+",
    r"\s+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
];

/// Candidates that are looked at for one cut.
const MOST_TRIES: usize = 64;

/// How words are found, as far as cuts go.
#[derive(Clone, Copy, Default)]
struct Words {
    splits: bool,      // A new word begins between a letter or digit and white space.
    space_only: bool,  // The same, if that is U+0020.
    punctuation: bool, // And between a letter or digit and ASCII punctuation.
}

pub struct CutPlan {
    words: Words,
    added: Vec<Added>,
    whole_bytes: Option<WholeBytes>,
}

/// An added token: how it is written, and whether what stands beside it makes a difference. (White
/// space before one that takes it does not: no cut is behind white space.)
struct Added {
    content: Vec<u8>,
    minds_before: bool,
    minds_after: bool,
}

/// GPT-2's words of bytes, joined by merges: they can be found from any word's beginning on, and
/// tokens within a word from any token's beginning on.
#[derive(Clone, Copy)]
pub struct WholeBytes {
    /// A text that does not begin with a space gets one.
    pub prefix_space: bool,
}

fn is_local(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::BertNormalizer(_)
        | NormalizerWrapper::StripAccents(_)
        | NormalizerWrapper::NFC(_)
        | NormalizerWrapper::NFD(_)
        | NormalizerWrapper::NFKC(_)
        | NormalizerWrapper::NFKD(_)
        | NormalizerWrapper::Lowercase(_)
        | NormalizerWrapper::Nmt(_)
        | NormalizerWrapper::Precompiled(_) => true,
        NormalizerWrapper::Sequence(parts) => parts.as_ref().iter().all(is_local),
        _ => false,
    }
}

/// None: words may depend on what is far away.
fn words_of(stage: &PreTokenizerWrapper) -> Option<Words> {
    let splits = Words {
        splits: true,
        ..Words::default()
    };
    match stage {
        PreTokenizerWrapper::BertPreTokenizer(_) => Some(Words {
            punctuation: true,
            ..splits
        }),
        PreTokenizerWrapper::ByteLevel(bytes) => Some(Words {
            splits: bytes.use_regex,
            space_only: bytes.add_prefix_space,
            punctuation: false,
        }),
        PreTokenizerWrapper::Metaspace(metaspace) => Some(Words {
            splits: metaspace.get_split(),
            space_only: true,
            punctuation: false,
        }),
        PreTokenizerWrapper::Whitespace(_) | PreTokenizerWrapper::WhitespaceSplit(_) => {
            Some(splits)
        }
        PreTokenizerWrapper::Punctuation(_) | PreTokenizerWrapper::Digits(_) => {
            Some(Words::default())
        }
        PreTokenizerWrapper::Split(split) => {
            let keeps = matches!(
                split.behavior,
                SplitDelimiterBehavior::Isolated | SplitDelimiterBehavior::Removed
            );
            let known = match &split.pattern {
                SplitPattern::Regex(text) => KNOWN_EXPRESSIONS.contains(&text.as_str()),
                SplitPattern::String(_) => false,
            };
            (keeps && known && !split.invert).then_some(splits)
        }
        PreTokenizerWrapper::Sequence(parts) => {
            let mut joined = Words::default();
            for part in parts.as_ref() {
                let words = words_of(part)?;
                joined.splits |= words.splits;
                joined.space_only |= words.space_only;
            }
            Some(joined)
        }
        _ => None,
    }
}

fn has_all_bytes(model: &ModelWrapper) -> bool {
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    ByteLevel::alphabet()
        .into_iter()
        .all(|byte| model.token_to_id(&byte.to_string()).is_some())
}

/// Whether every word gives at least one token, whatever other words there are.
fn gives_tokens(model: &ModelWrapper) -> bool {
    match model {
        ModelWrapper::BPE(bpe) => {
            bpe.dropout.is_none() && (bpe.unk_token.is_some() || has_all_bytes(model))
        }
        _ => true,
    }
}

fn whole_bytes(tokenizer: &Tokenizer) -> Option<WholeBytes> {
    let plain = |text: &Option<String>| text.as_ref().is_none_or(|t| t.is_empty());
    let (ModelWrapper::BPE(bpe), Some(PreTokenizerWrapper::ByteLevel(bytes)), None) = (
        tokenizer.get_model(),
        tokenizer.get_pre_tokenizer(),
        tokenizer.get_normalizer(),
    ) else {
        return None;
    };
    let is = bytes.use_regex
        && plain(&bpe.continuing_subword_prefix)
        && plain(&bpe.end_of_word_suffix)
        && has_all_bytes(tokenizer.get_model());
    is.then_some(WholeBytes {
        prefix_space: bytes.add_prefix_space,
    })
}

impl CutPlan {
    pub fn new(tokenizer: &Tokenizer) -> Option<CutPlan> {
        let normalizer = tokenizer.get_normalizer();
        if !normalizer.is_none_or(is_local) || !gives_tokens(tokenizer.get_model()) {
            return None;
        }
        let mut words = words_of(tokenizer.get_pre_tokenizer()?)?;
        if !words.splits {
            return None;
        }
        let mut added = Vec::new();
        for token in tokenizer.get_added_tokens_decoder().values() {
            if let (Some(normalizer), true) = (normalizer, token.normalized) {
                // Found in normalised text only, which is not looked at here.
                let mut content = NormalizedString::from(token.content.as_str());
                normalizer.normalize(&mut content).ok()?;
                let spaces = |text: &str| text.contains(char::is_whitespace);
                if token.rstrip || spaces(&token.content) || spaces(content.get()) {
                    return None;
                }
                words.punctuation = false;
            }
            if !token.content.is_empty() {
                added.push(Added {
                    content: token.content.as_bytes().to_vec(),
                    minds_before: token.single_word,
                    minds_after: token.single_word || token.rstrip,
                });
            }
        }
        Some(CutPlan {
            words,
            added,
            whole_bytes: whole_bytes(tokenizer),
        })
    }

    pub fn whole_bytes(&self) -> Option<WholeBytes> {
        self.whole_bytes
    }

    /// Whether an added token is written across byte `at`, or ends or begins there and minds.
    pub fn touches_added(&self, text: &str, at: usize) -> bool {
        let bytes = text.as_bytes();
        self.added.iter().any(|token| {
            let length = token.content.len();
            let inside = usize::from(!token.minds_after);
            let first = (at + inside).saturating_sub(length);
            let last = (at + usize::from(token.minds_before))
                .min((bytes.len() + 1).saturating_sub(length));
            (first..last).any(|begin| bytes[begin..].starts_with(&token.content))
        })
    }

    fn is_candidate(&self, before: u8, after: u8) -> bool {
        before.is_ascii_alphanumeric()
            && match after {
                b' ' => true,
                b'\t' | b'\n' | b'\r' => !self.words.space_only,
                other => self.words.punctuation && other.is_ascii_punctuation(),
            }
    }

    fn first_of(&self, text: &str, mut places: impl Iterator<Item = usize>) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut tries = 0;
        places.find(|&at| {
            if tries == MOST_TRIES || !self.is_candidate(bytes[at - 1], bytes[at]) {
                return false;
            }
            tries += 1;
            !self.touches_added(text, at)
        })
    }

    /// The last safe cut in [from, to], 0 < from, to < length.
    pub fn last_cut(&self, text: &str, from: usize, to: usize) -> Option<usize> {
        self.first_of(text, (from..=to).rev())
    }

    /// The first one.
    pub fn first_cut(&self, text: &str, from: usize, to: usize) -> Option<usize> {
        self.first_of(text, from..=to)
    }
}
