# The C library (docs/c.md) as a Homebrew formula: `brew install --HEAD ./packaging/homebrew/libaccountant.rb` after
# `head` names the repository. A release has `url` and `sha256` of its sdist instead.
class Libaccountant < Formula
  desc "Certified differential-privacy accounting of Gaussian noise"
  license "Apache-2.0"
  head "file://#{File.expand_path("../..", __dir__)}", using: :git, branch: "main"

  depends_on "pkg-config" => :test

  def install
    system "make", "-C", "libaccountant", "install", "prefix=#{prefix}"
  end

  test do
    (testpath/"test.c").write <<~C
      #include <accountant.h>
      int main(void) {
          accountant_bounds epsilon;
          return accountant_epsilon_bounds(0.01, 1.0, 1000, 1e-5, ACCOUNTANT_EITHER, &epsilon)
              || !(epsilon.lower <= epsilon.upper && epsilon.upper < 1.83);
      }
    C
    flags = shell_output("pkg-config --cflags --libs libaccountant").chomp.split
    system ENV.cc, "test.c", "-o", "test", *flags
    system "./test"
  end
end
