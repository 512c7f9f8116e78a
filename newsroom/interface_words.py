"""The words around an article: navigation, cookie banner, bylines."""
# ruff: noqa: RUF001 - Cyrillic letters are meant

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "home": "Home", "by": "By", "more": "Read more", "most_read": "Most read", "related": "Related stories",
        "authors": "Our authors", "archive": "Archive", "regions": "Regions", "contact": "Contact",
        "imprint": "Imprint", "privacy": "Privacy", "subscribe": "Subscribe", "ago": "{n} hours ago",
        "cookies": "We use cookies to improve your visit. By continuing you accept them.", "accept": "Accept all",
        "share": "Share this article", "comments": "Comments are closed.", "rights": "All rights reserved.",
        "newsletter": "Get our newsletter", "search": "Search", "caption": "Picture: archive", "page": "Page",
    },
    "de": {
        "home": "Startseite", "by": "Von", "more": "Mehr zum Thema", "most_read": "Meistgelesen",
        "related": "Verwandte Artikel", "authors": "Unsere Autoren", "archive": "Archiv", "regions": "Regionen",
        "contact": "Kontakt", "imprint": "Impressum", "privacy": "Datenschutz", "subscribe": "Abonnieren",
        "ago": "vor {n} Stunden",
        "cookies": "Wir verwenden Cookies, um Ihren Besuch zu verbessern. Wenn Sie fortfahren, stimmen Sie zu.",
        "accept": "Alle annehmen", "share": "Artikel teilen", "comments": "Die Kommentare sind geschlossen.",
        "rights": "Alle Rechte vorbehalten.", "newsletter": "Newsletter bestellen", "search": "Suche",
        "caption": "Bild: Archiv", "page": "Seite",
    },
    "es": {
        "home": "Portada", "by": "Por", "more": "Más información", "most_read": "Lo más leído",
        "related": "Noticias relacionadas", "authors": "Nuestros autores", "archive": "Hemeroteca",
        "regions": "Comarcas", "contact": "Contacto", "imprint": "Aviso legal", "privacy": "Privacidad",
        "subscribe": "Suscribirse", "ago": "hace {n} horas",
        "cookies": "Usamos cookies para mejorar su visita. Si continúa, las acepta.", "accept": "Aceptar todo",
        "share": "Compartir", "comments": "Los comentarios están cerrados.", "rights": "Todos los derechos reservados.",
        "newsletter": "Reciba nuestro boletín", "search": "Buscar", "caption": "Imagen: archivo", "page": "Página",
    },
    "ru": {
        "home": "Главная", "by": "Автор:", "more": "Ещё по теме", "most_read": "Самое читаемое",
        "related": "Похожие материалы", "authors": "Наши авторы", "archive": "Архив", "regions": "Регионы",
        "contact": "Контакты", "imprint": "О редакции", "privacy": "Конфиденциальность", "subscribe": "Подписаться",
        "ago": "{n} ч. назад",
        "cookies": "Мы используем куки, чтобы улучшить ваш визит. Оставаясь на сайте, вы соглашаетесь с этим.",
        "accept": "Принять все", "share": "Поделиться", "comments": "Комментарии закрыты.",
        "rights": "Все права защищены.", "newsletter": "Получайте нашу рассылку", "search": "Поиск",
        "caption": "Фото: архив", "page": "Страница",
    },
}  # fmt: skip
