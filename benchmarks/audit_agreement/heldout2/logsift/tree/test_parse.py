import unittest

from parse import entries, level, parse_line, template

LINE = 'Mar  3 04:05:06 web1 sshd[811]: Failed password for root from 10.0.0.7 port 5022'


class ParseTest(unittest.TestCase):
    def test_line(self):
        e = parse_line(LINE)
        self.assertEqual((e.host, e.program, e.level), ('web1', 'sshd', 'error'))

    def test_template(self):
        self.assertEqual(template('from 10.0.0.7 port 5022'), 'from <ip> port <n>')
        self.assertEqual(template('open /var/log/x.log'), 'open <path>')

    def test_levels(self):
        self.assertEqual(level('kernel panic'), 'crit')
        self.assertEqual(level('all is well'), 'info')

    def test_ignored(self):
        self.assertEqual(list(entries([LINE], ['^sshd'])), [])

    def test_no_log_line(self):
        self.assertIsNone(parse_line('-- Boot 1234 --'))


if __name__ == '__main__':
    unittest.main()
