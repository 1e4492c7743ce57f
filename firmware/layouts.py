"""The characters of each keyboard layout (scripts/layouts.py, from xkb-data 2.35.1-1).

Of each layout: what the keys with the usages 04 to 38, then 64, type plain, with Shift, with AltGr, both;
NUL for nothing, a combining character for a dead key."""

# ruff: noqa: E501, RUF001

SOURCE = "xkb-data 2.35.1-1"

COMPOSED = "À\u0300AÁ\u0301AÂ\u0302AÃ\u0303AÄ\u0308AÅ\u030aAÇ\u0327CÈ\u0300EÉ\u0301EÊ\u0302EË\u0308EÌ\u0300IÍ\u0301IÎ\u0302IÏ\u0308IÑ\u0303NÒ\u0300OÓ\u0301OÔ\u0302OÕ\u0303OÖ\u0308OÙ\u0300UÚ\u0301UÛ\u0302UÜ\u0308UÝ\u0301Yà\u0300aá\u0301aâ\u0302aã\u0303aä\u0308aå\u030aaç\u0327cè\u0300eé\u0301eê\u0302eë\u0308eì\u0300ií\u0301iî\u0302iï\u0308iñ\u0303nò\u0300oó\u0301oô\u0302oõ\u0303oö\u0308où\u0300uú\u0301uû\u0302uü\u0308uý\u0301yÿ\u0308y^\u0302 `\u0300 ~\u0303 "
"""Triples: a character, the dead key and the next key that compose it."""

LAYOUTS = {
    "us": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t -=[]\\\x00;'`,./",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!@#$%^&*()\x00\x00\x00\x00\x00_+{}|\x00:\"~<>?",
    ),
    "uk": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t -=[]#\x00;'`,./\\",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"£$%^&*()\x00\x00\x00\x00\x00_+{}~\x00:@¬<>?|",
        "æ“¢ðeđŋħ→\x00ĸłµ”øþ@¶ßŧ↓„ſ»←«¹²³€½¾{[]}\x00\x00\x00\x00\x00\\\u0327\u0308\u0303\u0300\x00\u0301\u0302|•·\x00|",
        "Æ‘©ÐEªŊĦı\x00&Łº’ØÞΩ®ẞŦ↑‚§>¥<¡⅛£¼⅜⅝⅞™±°\x00\x00\x00\x00\x00¿\x00\u030a\x00\x00\x00\x00\x00|×÷\x00¦",
    ),
    "de": (
        "abcdefghijklmnopqrstuvwxzy1234567890\n\x00\x00\t ß\u0301ü+#\x00öä\u0302,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXZY!\"§$%&/()=\x00\x00\x00\x00\x00?\u0300Ü*'\x00ÖÄ°;:_>",
        "æ“¢ð€đŋħ→\x00ĸłµ”øþ@¶ſŧ↓„ſ«←»¹²³¼½¬{[]}\x00\x00\x00\x00\x00\\\u0327\u0308~’\x00\x00\u0302′·…–|",
        "Æ‘©Ð€ªŊĦı\x00&Łº’ØÞΩ®ẞŦ↑‚§‹¥›¡⅛£¤⅜⅝⅞™±°\x00\x00\x00\x00\x00¿\x00\u030a¯\x00\x00\x00\x00″×÷—",
    ),
    "fr": (
        "qbcdefghijkl,noparstuvzxyw&é\"'(-è_çà\n\x00\x00\t )=\u0302$*\x00mù²;:!<",
        "QBCDEFGHIJKL?NOPARSTUVZXYW1234567890\x00\x00\x00\x00\x00°+\u0308£µ\x00M%~./§>",
        "@“¢ð€đŋħ→\x00ĸł\u0301”øþæ¶ßŧ↓„«»←ł¹~#{[|`\\^@\x00\x00\x00\x00\x00]}\u0308¤\u0300\x00µ\u0302¬•·\x00|",
        "Ω‘©Ð¢ªŊĦı\x00&Ł\x00’ØÞÆ®ẞŦ↑‚<>¥Ł¡⅛£$⅜⅝⅞™±°\x00\x00\x00\x00\x00¿\x00\u030a\x00\x00\x00º\x00¬×÷\x00¦",
    ),
    "es": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t '¡\u0300+ç\x00ñ\u0301º,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"·$%&/()=\x00\x00\x00\x00\x00?¿\u0302*Ç\x00Ñ\u0308ª;:_>",
        "æ“¢ð€đŋħ→\x00ĸłµ”øþ@¶ßŧ↓„ſ»←«|@#~½¬{[]}\x00\x00\x00\x00\x00\\\u0327[]}\x00\u0303{\\•·\x00|",
        "Æ‘©Ð¢ªŊĦı\x00&Łº’ØÞΩ®ẞŦ↑‚§>¥<¡⅛£$⅜⅝⅞™±°\x00\x00\x00\x00\x00¿\x00\u030a\x00\x00\x00\x00\x00\\×÷\x00¦",
    ),
    "it": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t 'ìè+ù\x00òà\\,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"£$%&/()=\x00\x00\x00\x00\x00?^é*§\x00ç°|;:_>",
        "æ”¢ð€đŋħ→\x00ĸłµñøþ@¶ßŧ↓“ſ»←«¹²³¼½¬{[]}\x00\x00\x00\x00\x00`~[]\u0300\x00@#¬\u0301·\x00«",
        "Æ’©Ð¢ªŊĦı\x00&ŁºÑØÞΩ®ẞŦ↑‘§>¥<¡\x00\u0303⅛⅜⅝⅞™±\x00\x00\x00\x00\x00\x00¿\u0302{}\x00\x00\u0327\u030a¦×\u0308÷»",
    ),
    "se": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t +\u0301å\u0308'\x00öä§,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#¤%&/()=\x00\x00\x00\x00 ?\u0300Å\u0302*\x00ÖÄ½;:_>",
        "ª“©ð€đŋħ→\x00ĸłµ”œþ@®ßþ↓„ſ»←«¡@£$€¥{[]}\x00\x00\x00\x00 \\±\u0308\u0303´\x00øæ¶\u0327·\x00|",
        "º‘©Ð¢ªŊĦı\x00&Łº’ŒÞΩ®ẞÞ↑‚§>¥<¹²³¼¢⅝÷«»°\x00\x00\x00\x00\x00¿¬\u030a\x00×\x00ØÆ¾\x00\x00\x00¦",
    ),
    "no": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t +\\å\u0308'\x00øæ|,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#¤%&/()=\x00\x00\x00\x00 ?\u0300Å\u0302*\x00ØÆ§;:_>",
        "ª“©ð€đŋħ→\x00ĸłµ”œπ@®ßþ↓„ſ»←«¡@£$½¥{[]}\x00\x00\x00\x00\x00±\u0301\u0308\u0303\x00\x00\u0301\u0302¦\u0327…–½",
        "º‘©Ð¢ªŊĦı\x00&Łº’ŒΠΩ™ẞÞ↑‚§>¥<¹²³¼‰⅝÷«»°\x00\x00\x00\x00\x00¿¬\u030a\x00×\x00\x00\x00¶\x00·—¾",
    ),
    "dk": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t +\u0301å\u0308'\x00æø½,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#¤%&/()=\x00\x00\x00\x00\x00?\u0300Å\u0302*\x00ÆØ§;:_>",
        "ª“©ð€đŋħ→\x00ĸłµ”œþ@®ßþ↓„ſ»←«¡@£$½¥{[]}\x00\x00\x00\x00\x00±|\u0308\u0303\x00\x00\u0301\u0302¾\u0327·\x00\\",
        "º‘©Ð¢ªŊĦı\x00&Łº’ŒÞΩ®ẞÞ↑‚§>¥<¹²³¼¢⅝÷«»°\x00\x00\x00\x00\x00¿¦\u030a\x00×\x00\x00\x00¶\x00\x00\x00¬",
    ),
    "fi": (
        "abcdefghijklmnopqrstuvwxyz1234567890\n\x00\x00\t +\u0301å\u0308'\x00öä§,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#¤%&/()=\x00\x00\x00\x00 ?\u0300Å\u0302*\x00ÖÄ½;:_>",
        "əbcð€fghıjĸ\x00µŋœ\x00qrßþuvw×yʒ\x00@£$‰‚{[]}\x00\x00\x00\x00 \\\u0327\x00\u0303\x00\x00øæ\x00’\x00–|",
        "ƏBCÐ\x00FGH|J\x00\x00—ŊŒ\x00QRẞÞUVW·YƷ¡”»«“„\x00<>°\x00\x00\x00\x00\x00¿\x00\u030a\x00\x00\x00ØÆ\x00‘\x00\x00¦",
    ),
    "ch-de": (
        "abcdefghijklmnopqrstuvwxzy1234567890\n\x00\x00\t '\u0302ü\u0308$\x00öä§,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXZY+\"*ç%&/()=\x00\x00\x00\x00\x00?\u0300è!£\x00éà°;:_>",
        "æ“¢ð€đŋħ→\x00ĸłµ”œþ@¶ßŧ↓„ſ»←«|@#¼½¬|¢]}\x00\x00\x00\x00\x00\u0301\u0303[]}\x00\u0301{¬•·\x00\\",
        "Æ‘©ÐEªŊĦı\x00&Łº’ŒÞΩ®ẞŦ↑‚§>¥<¡⅛£$⅜⅝⅞™±°\x00\x00\x00\x00\x00¿\x00\u030a\x00\x00\x00\x00\x00¬×÷\x00¦",
    ),
    "ch-fr": (
        "abcdefghijklmnopqrstuvwxzy1234567890\n\x00\x00\t '\u0302è\u0308$\x00éà§,.-<",
        "ABCDEFGHIJKLMNOPQRSTUVWXZY+\"*ç%&/()=\x00\x00\x00\x00\x00?\u0300ü!£\x00öä°;:_>",
        "æ“¢ð€đŋħ→\x00ĸłµ”œþ@¶ßŧ↓„ſ»←«|@#¼½¬|¢]}\x00\x00\x00\x00\x00\u0301\u0303[]}\x00\u0301{¬•·\x00\\",
        "Æ‘©ÐEªŊĦı\x00&Łº’ŒÞΩ®ẞŦ↑‚§>¥<¡⅛£$⅜⅝⅞™±°\x00\x00\x00\x00\x00¿\x00\u030a\x00\x00\x00\x00\x00¬×÷\x00¦",
    ),
}
