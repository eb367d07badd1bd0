"""A few hundred texts in many scripts: sentences after the first article of the Universal Declaration of
Human Rights, also spelled as people and programs spell, mixed, and any code points."""

import random
import unicodedata

ARTICLE = {
    "ar": "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً.",
    "bn": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason "
          "and conscience and should act towards one another in a spirit of brotherhood.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "fa": "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند.",
    "fi": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "hu": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van.",
    "id": "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti.",
    "ja": "すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter.",
    "sw": "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.",
    "ta": "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "zh": "人人生而自由，在尊严和权利上一律平等。",
}
ODD = ["", " ", "\t\n", "a", ".", "  two  spaces  ", "a\tb\nc\r\nd", "ＦＵＬＬ ｗｉｄｔｈ １２３", "ﬁne ﬂow ½ ² ™ №",
       "e\u0301 vs \u00e9", "zero\u200bwidth\u200djoin\ufeff", "soft\u00adhyphen non\u00a0break", "😀 👩‍👩‍👧 🇫🇷 ✌🏽",
       "x" * 300, "1,234,567.89 €", "https://example.org/a?b=c&d=%20", "foo_bar(baz[0]) == 'qux'; // no",
       "<s> and </s> and [CLS] and <mask>", "\u0000null\u0001", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙", "ÅÄÖ åäö ßẞ İıŞş", "नमस्ते\u200c दुनिया"]


def spelled(text):
    """One text as it may come."""
    yield text
    yield text.upper()
    yield text.lower().rstrip(".。।")
    yield unicodedata.normalize("NFD", text)
    yield unicodedata.normalize("NFKC", text).replace(" ", "  ")
    yield text[:len(text) // 3]
    yield f"\n{text}\n\n"


def mixed(count, seed):
    """Runs of words of several languages."""
    draw = random.Random(seed)
    words = [word for text in ARTICLE.values() for word in text.split()]
    for _ in range(count):
        yield " ".join(draw.choices(words, k=draw.randint(1, 60)))


def scripts(count, seed):
    """Code points from everywhere but surrogates, a few in a row from one place."""
    draw = random.Random(seed)
    for _ in range(count):
        starts = [draw.choice([draw.randrange(0xD000), draw.randrange(0xE000, 0x1FB00)]) for _ in range(12)]
        yield "".join(chr(start + step) for start in starts for step in range(3)
                      if not 0xD800 <= start + step < 0xE000)


def texts():
    """All of them, each once, in the same order in every run."""
    found = [*ODD, *(way for text in ARTICLE.values() for way in spelled(text)), *mixed(80, 1), *scripts(80, 2)]
    return list(dict.fromkeys(found))


# Longer than any limit of the checkpoints.
LONG = " ".join(ARTICLE.values()) * 4
