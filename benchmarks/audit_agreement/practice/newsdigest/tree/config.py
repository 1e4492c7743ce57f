FEED_DIR = "/home/marc/feeds"
OUT = "/home/marc/www/digest.html"
DB = "/home/marc/news.db"
MAIL_PASSWORD = "changeme-news-2024"
MAX_ITEMS = 50
