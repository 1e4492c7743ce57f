import os


def clone_repo(url):
    os.system("rm -rf repo")
    os.system("git clone " + url + " repo")
    return "repo"


def get_log(path):
    return os.popen("cd " + path + " && git log --oneline").read()


def read_files(path):
    out = ""
    for root, dirs, files in os.walk(path):
        for f in files:
            if f.endswith(".py"):
                out += "\n# " + f + "\n" + open(os.path.join(root, f)).read()
    return out


def read_pdf(path):
    try:
        import PyPDF2
        return "".join(p.extract_text() for p in PyPDF2.PdfReader(path).pages)
    except:
        return ""
