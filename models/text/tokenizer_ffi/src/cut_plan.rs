//! Places where a text may be cut: its parts, tokenised one by one, give the tokens of the whole.
//!
//! A cut is safe if no stage of the tokenizer looks across it: no stage looks farther than a few
//! characters but along a run that ends there, a new word begins there, what is tokenised around it
//! has the same tokens cut and uncut, and no added token reaches over there or minds what is beyond.
//! Stages that are not known to be local leave a tokenizer without a plan.

use tokenizers::normalizers::replace::Replace;
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

/// Expressions of `Replace` whose matches end where white space does.
const WHITE_SPACE_RUNS: [&str; 6] = [r" {2,}", r" +", r"\s+", r"\s{2,}", r"[\n\r\t]", r"\n+"];

/// Candidates that are looked at for one cut.
const MOST_TRIES: usize = 64;

/// Bytes on either side of a candidate that are tokenised to see whether the cut changes them.
const LOOKED_AT: usize = 48;

/// Characters of white space before which a text is cut, unless such is no part of words.
const LONGEST_RUN: usize = 8;

/// How words are found, as far as cuts go.
#[derive(Clone, Copy, Default)]
struct Words {
    splits: bool,     // A new word begins between what is no white space and white space.
    space_only: bool, // A new word begins at U+0020 only, at no other white space.
    characters: bool, // Beside punctuation, and beside ideographs if the normalizer sets them apart.
    blank: bool,      // White space is no part of any word.
}

pub struct CutPlan {
    words: Words,
    added: Vec<Added>,
    whole_bytes: Option<WholeBytes>,
}

/// An added token: how it is written, and whether what stands beside it makes a difference. (White
/// space before one that takes it does not where a text is cut safely: no such cut is behind white
/// space.)
struct Added {
    content: Vec<u8>,
    minds_before: bool,
    minds_after: bool,
    takes_before: bool, // All white space before it.
}

/// GPT-2's words of bytes, joined by merges: they can be found from any word's beginning on, and
/// tokens within a word from any token's beginning on.
#[derive(Clone, Copy)]
pub struct WholeBytes {
    /// A text that does not begin with a space gets one.
    pub prefix_space: bool,
}

/// Whether matches are short, or cannot reach over the beginning of a run of white space.
fn replaces_locally(replace: &Replace) -> bool {
    let Ok(written) = serde_json::to_value(replace) else {
        return false;
    };
    let pattern = &written["pattern"];
    match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
        (Some(text), _) => text.len() < LOOKED_AT / 2,
        (_, Some(expression)) => WHITE_SPACE_RUNS.contains(&expression),
        _ => false,
    }
}

fn is_local(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::Replace(replace) => replaces_locally(replace),
        // No cut is behind white space, so none ends a text that would lose any.
        NormalizerWrapper::StripNormalizer(strip) => !strip.strip_left,
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

/// Whether what a text begins with is normalised without a look at what is far behind.
fn keeps_beginnings(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::StripNormalizer(_)
        | NormalizerWrapper::Prepend(_)
        | NormalizerWrapper::ByteLevel(_) => true,
        NormalizerWrapper::Sequence(parts) => parts.as_ref().iter().all(keeps_beginnings),
        other => is_local(other),
    }
}

fn splits_locally(stage: &PreTokenizerWrapper) -> bool {
    match stage {
        PreTokenizerWrapper::Delimiter(_)
        | PreTokenizerWrapper::UnicodeScripts(_)
        | PreTokenizerWrapper::FixedLength(_) => true,
        PreTokenizerWrapper::Split(split) if matches!(split.pattern, SplitPattern::String(_)) => {
            true
        }
        PreTokenizerWrapper::Sequence(parts) => parts.as_ref().iter().all(splits_locally),
        other => words_of(other).is_some(),
    }
}

fn strips(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::StripNormalizer(_) => true,
        NormalizerWrapper::Sequence(parts) => parts.as_ref().iter().any(strips),
        _ => false,
    }
}

/// Most of what BERT's normalizer sets apart.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{20000}'..='\u{2A6DF}')
}

/// Most of what its pre-tokenizer sets apart.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{3001}'..='\u{3003}')
        || matches!(c, '\u{3008}'..='\u{3011}' | '\u{FF01}'..='\u{FF0F}')
}

/// Letters and signs that no normalizer drops; there are more.
fn is_solid(c: char) -> bool {
    c.is_ascii_graphic()
        || is_ideograph(c)
        || is_punctuation(c)
        || matches!(c, 'À'..='ʯ' | 'Α'..='ҁ' | 'Ҋ'..='Ֆ' | 'א'..='ת' | 'ؠ'..='ي')
        || matches!(c, 'अ'..='ह' | 'ก'..='ะ' | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '가'..='힣')
        || matches!(c, '\u{1F300}'..='\u{1F3FA}' | '\u{1F400}'..='\u{1F6FF}' | '\u{1F900}'..='\u{1F9FF}')
}

/// None: words may depend on what is far away.
fn words_of(stage: &PreTokenizerWrapper) -> Option<Words> {
    let splits = Words {
        splits: true,
        ..Words::default()
    };
    match stage {
        PreTokenizerWrapper::BertPreTokenizer(_) => Some(Words {
            characters: true,
            blank: true,
            ..splits
        }),
        PreTokenizerWrapper::ByteLevel(bytes) => Some(Words {
            splits: bytes.use_regex,
            space_only: bytes.add_prefix_space,
            ..Words::default()
        }),
        PreTokenizerWrapper::Metaspace(metaspace) => Some(Words {
            splits: metaspace.get_split(),
            space_only: true,
            ..Words::default()
        }),
        PreTokenizerWrapper::Whitespace(_) | PreTokenizerWrapper::WhitespaceSplit(_) => {
            Some(Words {
                blank: true,
                ..splits
            })
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
            for (i, part) in parts.as_ref().iter().enumerate() {
                let words = words_of(part)?;
                joined.splits |= words.splits;
                joined.blank |= i == 0 && words.blank;
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
        words.space_only &= normalizer.is_none(); // One may make it of other white space.
        words.blank &= normalizer.is_none_or(|n| !strips(n));
        for token in tokenizer.get_added_tokens_decoder().values() {
            words.blank &= !token.lstrip && !token.rstrip;
            if let (Some(normalizer), true) = (normalizer, token.normalized) {
                // Found in normalised text only, which is not looked at here.
                let mut content = NormalizedString::from(token.content.as_str());
                normalizer.normalize(&mut content).ok()?;
                let spaces = |text: &str| text.contains(char::is_whitespace);
                if token.rstrip || spaces(&token.content) || spaces(content.get()) {
                    return None;
                }
                words.characters = false;
            }
            if !token.content.is_empty() {
                added.push(Added {
                    content: token.content.as_bytes().to_vec(),
                    minds_before: token.single_word,
                    minds_after: token.single_word || token.rstrip,
                    takes_before: token.lstrip,
                });
            }
        }
        Some(CutPlan {
            words,
            added,
            whole_bytes: whole_bytes(tokenizer),
        })
    }

    /// Whether a text's first tokens may be taken from a long beginning of it.
    pub fn begins_alike(tokenizer: &Tokenizer) -> bool {
        tokenizer.get_normalizer().is_none_or(keeps_beginnings)
            && tokenizer.get_pre_tokenizer().is_none_or(splits_locally)
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

    /// Whether white space that ends at `at` may belong to an added token that begins there.
    pub fn takes_spaces_before(&self, text: &str, at: usize) -> bool {
        let rest = &text.as_bytes()[at..];
        self.added
            .iter()
            .any(|token| token.takes_before && rest.starts_with(&token.content))
    }

    fn is_candidate(&self, text: &str, at: usize) -> bool {
        if !text.is_char_boundary(at) {
            return false;
        }
        let (Some(before), Some(after)) =
            (text[..at].chars().next_back(), text[at..].chars().next())
        else {
            return false;
        };
        if after.is_whitespace() {
            // Normalizers may shorten a run, which `agrees` sees only of one that lies in its reach.
            let run = text[at..].chars().take(LONGEST_RUN);
            let behind = run.skip_while(|c| c.is_whitespace()).next();
            let place = is_solid(before) && behind.is_some_and(is_solid);
            return (self.words.blank || place) && (after == ' ' || !self.words.space_only);
        }
        let alone = |c: char| is_ideograph(c) || is_punctuation(c);
        self.words.characters && !before.is_whitespace() && (alone(before) || alone(after))
    }

    /// Whether what lies around `at` has the same tokens, words and places cut there and whole.
    fn agrees(&self, tokenizer: &Tokenizer, text: &str, at: usize) -> bool {
        let from = text.floor_char_boundary(at.saturating_sub(LOOKED_AT));
        let to = text.floor_char_boundary(text.len().min(at + LOOKED_AT));
        let read = |from: usize, to: usize| {
            let encoding = tokenizer.encode(&text[from..to], false).ok()?;
            let tokens = encoding.get_ids().iter().zip(encoding.get_offsets());
            let tokens = tokens.map(|(&id, offset)| (id, offset.0 + from, offset.1 + from));
            let words = encoding.get_word_ids().iter().copied();
            Some(tokens.zip(words).collect::<Vec<_>>())
        };
        let (Some(whole), Some(mut parts), Some(behind)) =
            (read(from, to), read(from, at), read(at, to))
        else {
            return false;
        };
        let words = parts.last().map_or(0, |last| last.1.map_or(0, |w| w + 1));
        let joined = |(token, word): (_, Option<u32>)| (token, word.map(|w| w + words));
        parts.extend(behind.into_iter().map(joined));
        whole == parts
    }

    /// The first safe cut among `places`, which lie inside the text: an ascending range finds the
    /// next one, a reversed range the last one. None if too many candidates are tried in vain.
    pub fn first_of(
        &self,
        tokenizer: &Tokenizer,
        text: &str,
        mut places: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let mut tries = 0;
        places.find(|&at| {
            if tries == MOST_TRIES || !self.is_candidate(text, at) {
                return false;
            }
            tries += 1;
            !self.touches_added(text, at) && self.agrees(tokenizer, text, at)
        })
    }
}
